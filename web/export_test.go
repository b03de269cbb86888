package web

import (
	"io/fs"
	"strings"
	"testing/fstest"
)

// NewRenderer is New from other files.
func NewRenderer(fsys fs.FS, version string) *Renderer { return newRenderer(fsys, version) }

// BrokenTemplates returns the embedded files with something missing, by what it is.
func BrokenTemplates() map[string]fs.FS {
	change := func(edit func(fstest.MapFS)) fs.FS {
		m := fstest.MapFS{}
		err := fs.WalkDir(embedded, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := fs.ReadFile(embedded, name)
			m[name] = &fstest.MapFile{Data: b}
			return err
		})
		if err != nil {
			panic(err)
		}
		edit(m)
		return m
	}
	replace := func(file, old, new string) fs.FS {
		return change(func(m fstest.MapFS) {
			s := string(m[file].Data)
			if !strings.Contains(s, old) {
				panic(file + " has no " + old)
			}
			m[file].Data = []byte(strings.ReplaceAll(s, old, new))
		})
	}
	return map[string]fs.FS{
		"a page's file is missing":             change(func(m fstest.MapFS) { delete(m, "templates/setup.html") }),
		"a live part is not defined":           replace("templates/overview.html", `{{define "live:projects"}}`, `{{define "live:other"}}`),
		"a template is used and not declared":  replace("templates/parts.html", `{{define "pager"}}`, `{{define "pages"}}`),
		"an asset is named that is not there":  replace("templates/layout.html", `"app.css"`, `"main.css"`),
		"a template asks for an unknown field": replace("templates/layout.html", `{{.Version}}`, `{{.Edition}}`),
	}
}

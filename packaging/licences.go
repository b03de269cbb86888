//go:build ignore

// Command licences prints what docket's binary is made of besides docket: each
// module that is linked in with its version, its licences, and the texts and
// notices that have to travel with the binary; and the files of others that the
// page loads. It fails on a licence that it does not know or that is not among
// those allowed. `make licences` writes its output down.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// allowed are the licences that something in the binary may have. None asks for
// more than that its text, and a notice, come along; of MPL-2.0 also where the
// source is, which the module's path and version say.
var allowed = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}

// words tell licences apart by a sentence that only they have, in texts whose
// white space is single blanks and whose letters are small. A text may have
// several, as when parts of a module are of others.
var words = []struct {
	licence    string
	has, lacks []string
}{
	{"Apache-2.0", []string{"apache license", "version 2.0"}, nil},
	{"MIT", []string{"permission is hereby granted, free of charge"}, nil},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "neither the name"}, nil},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms"}, []string{"neither the name"}},
	{"ISC", []string{"permission to use, copy, modify, and", "with or without fee is hereby granted, provided that the above copyright notice"}, nil},
	{"0BSD", []string{"permission to use, copy, modify, and", "with or without fee is hereby granted."}, nil},
	{"MPL-2.0", []string{"mozilla public license", "2.0"}, nil},
	{"GPL", []string{"gnu general public license"}, []string{"mozilla public license"}},
	{"AGPL", []string{"gnu affero general public license"}, []string{"mozilla public license"}},
	{"LGPL", []string{"gnu lesser general public license"}, []string{"mozilla public license"}},
	{"not open", []string{"business source license"}, nil},
	{"not open", []string{"server side public license"}, nil},
	{"not open", []string{"commons clause"}, nil},
}

// textName is how files are called that hold a licence or a notice.
var textName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([._-].*)?$`)

// part is something that is in the binary.
type part struct {
	name, version string
	licences      []string
	texts         []text
}

type text struct{ name, body string }

func main() {
	parts, err := modules("linux/amd64", "linux/arm64")
	if err == nil {
		var files []part
		if files, err = vendored("web/assets/vendor"); err == nil {
			parts = append(parts, files...)
			err = write(os.Stdout, parts)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

// modules returns the modules of which some package is linked in on any of the
// platforms.
func modules(platforms ...string) ([]part, error) {
	dirs := map[[3]string][]string{} // by path, version and root: those of packages
	for _, p := range platforms {
		goos, goarch, _ := strings.Cut(p, "/")
		cmd := exec.Command("go", "list", "-deps", "-json=Dir,Module", "./cmd/docket")
		cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var pkg struct {
				Dir    string
				Module *struct {
					Path, Version, Dir string
					Main               bool
					Replace            *struct{ Path string }
				}
			}
			if err := d.Decode(&pkg); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			m := pkg.Module
			if m == nil || m.Main {
				continue
			}
			if m.Replace != nil {
				return nil, fmt.Errorf("%s is replaced by %s; say whose licence that has", m.Path, m.Replace.Path)
			}
			key := [3]string{m.Path, m.Version, m.Dir}
			dirs[key] = append(dirs[key], pkg.Dir)
		}
	}
	var parts []part
	for key, packages := range dirs {
		p, err := module(key[0], key[1], key[2], packages)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
		if p.name == "golang.org/x/sys" { // The Go Authors' own licence has the same words everywhere
			parts = append(parts, part{name: "The Go standard library", version: "-", licences: p.licences, texts: p.texts})
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return strings.Compare(strings.ToLower(a.name), strings.ToLower(b.name)) })
	return parts, nil
}

// module reads a module's texts: those at its root, and those beside packages
// that are linked in and above them.
func module(path, version, root string, packages []string) (part, error) {
	p := part{name: path, version: version}
	seen := map[string]bool{}
	for _, dir := range append([]string{root}, packages...) {
		for ; len(dir) >= len(root) && !seen[dir]; dir = filepath.Dir(dir) {
			seen[dir] = true
			if err := p.read(dir, root); err != nil {
				return p, err
			}
		}
	}
	slices.SortFunc(p.texts, func(a, b text) int { return strings.Compare(a.name, b.name) })
	return p, p.check()
}

// read adds the texts in a directory.
func (p *part) read(dir, root string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if !e.Type().IsRegular() || !textName.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		rel, err := filepath.Rel(root, filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		if err := p.add(filepath.Join(dir, e.Name()), filepath.ToSlash(rel)); err != nil {
			return err
		}
	}
	return nil
}

func (p *part) add(path, name string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	body := strings.TrimSpace(strings.ReplaceAll(string(b), "\r\n", "\n"))
	p.texts = append(p.texts, text{name, body})
	plain := strings.ToLower(strings.Join(strings.Fields(body), " "))
	for _, w := range words {
		missing := func(s string) bool { return !strings.Contains(plain, s) }
		if !slices.ContainsFunc(w.has, missing) && !slices.ContainsFunc(w.lacks, func(s string) bool { return !missing(s) }) && !slices.Contains(p.licences, w.licence) {
			p.licences = append(p.licences, w.licence)
		}
	}
	return nil
}

func (p *part) check() error {
	slices.Sort(p.licences)
	if len(p.licences) == 0 {
		return fmt.Errorf("%s %s has no licence that is known here; look at its texts, and teach packaging/licences.go or do without it", p.name, p.version)
	}
	for _, l := range p.licences {
		if !slices.Contains(allowed, l) {
			return fmt.Errorf("%s %s has the licence %s, and only these are allowed: %s", p.name, p.version, l, strings.Join(allowed, ", "))
		}
	}
	return nil
}

// vendored returns the files of others in a directory, as its README.md lists
// them: file, package, version, licence and its text.
func vendored(dir string) ([]part, error) {
	b, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		return nil, err
	}
	row := regexp.MustCompile("^\\| `([^`]+)` \\| `([^`]+)`[^|]*\\| ([^ |]+) \\| ([^ ,|]+), `([^`]+)` \\|$")
	var parts []part
	listed := map[string]bool{"README.md": true}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		f := row.FindStringSubmatch(s.Text())
		if f == nil {
			continue
		}
		listed[f[1]], listed[f[5]] = true, true
		if _, err := os.Stat(filepath.Join(dir, f[1])); err != nil {
			return nil, err
		}
		p := part{name: f[2] + " (" + f[1] + ")", version: f[3]}
		if err := p.add(filepath.Join(dir, f[5]), f[5]); err != nil {
			return nil, err
		}
		if err := p.check(); err != nil {
			return nil, err
		}
		if !slices.Equal(p.licences, []string{f[4]}) {
			return nil, fmt.Errorf("%s: its README says %s, its text %s", f[1], f[4], strings.Join(p.licences, ", "))
		}
		parts = append(parts, p)
	}
	return parts, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !listed[d.Name()] {
			return fmt.Errorf("%s is not in the table of %s/README.md; add it with its licence", path, dir)
		}
		return err
	})
}

const head = `What docket is made of besides docket
=====================================

docket itself is under the Apache License 2.0 (LICENSE). Its binary holds what is listed
here, each under its own licence; the texts and notices follow. The source of each
module is where its path says, at this version. The data of time zones is from the IANA
Time Zone Database, which is in the public domain.

Written by ` + "`make licences`" + `; do not edit.

`

func write(w io.Writer, parts []part) error {
	var b bytes.Buffer
	b.WriteString(head)
	wide := 0
	for _, p := range parts {
		wide = max(wide, len(p.name)+len(p.version))
	}
	for _, p := range parts {
		fmt.Fprintf(&b, "%s %s%s  %s\n", p.name, p.version, strings.Repeat(" ", wide-len(p.name)-len(p.version)), strings.Join(p.licences, ", "))
	}
	of := map[string][]string{} // who has a text
	var order []string
	for _, p := range parts {
		for _, t := range p.texts {
			if of[t.body] == nil {
				order = append(order, t.body)
			}
			of[t.body] = append(of[t.body], p.name+": "+t.name)
		}
	}
	for _, body := range order {
		fmt.Fprintf(&b, "\n%s\n%s\n%s\n\n%s\n", strings.Repeat("-", 80), strings.Join(of[body], "\n"), strings.Repeat("-", 80), body)
	}
	_, err := b.WriteTo(w)
	return err
}

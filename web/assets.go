package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

// AssetPrefix is where Renderer.Assets is to be mounted, its prefix unstripped.
const AssetPrefix = "/assets/"

// assets are the embedded files by path: /assets/HASH/NAME.
type assets struct {
	byPath map[string]asset
	paths  map[string]string // by name
}

type asset struct {
	contentType string
	content     []byte
}

func mustAssets(fsys fs.FS) *assets {
	a := &assets{byPath: map[string]asset{}, paths: map[string]string{}}
	err := fs.WalkDir(fsys, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		name = strings.TrimPrefix(name, "assets/")
		sum := sha256.Sum256(b)
		p := AssetPrefix + hex.EncodeToString(sum[:6]) + "/" + name
		a.paths[name] = p
		a.byPath[p] = asset{contentType(name), b}
		return nil
	})
	if err != nil {
		panic(err)
	}
	return a
}

func contentType(name string) string {
	switch ext := path.Ext(name); ext {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".LICENSE", ".md":
		return "text/plain; charset=utf-8"
	default:
		return mime.TypeByExtension(ext)
	}
}

func (a *assets) path(name string) string {
	p, ok := a.paths[name]
	if !ok {
		panic(fmt.Sprintf("no asset %q", name))
	}
	return p
}

// ServeHTTP answers GET and HEAD for exactly the paths that pages name.
func (a *assets) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	f, ok := a.byPath[req.URL.Path]
	if !ok {
		http.NotFound(w, req)
		return
	}
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "an asset takes GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.contentType)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(f.content))
}

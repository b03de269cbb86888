package web_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"docket/web"
)

// Ensure that assets are served for ever under a path that is their content's.
func TestAssets(t *testing.T) {
	r := web.New("")
	for name, want := range map[string]string{
		"app.css": "text/css; charset=utf-8", "app.js": "text/javascript; charset=utf-8", "favicon.svg": "image/svg+xml",
		"vendor/htmx.min.js": "text/javascript; charset=utf-8", "vendor/htmx.LICENSE": "text/plain; charset=utf-8",
	} {
		w := get(r, http.MethodGet, r.AssetPath(name))
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != want || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || w.Body.Len() == 0 {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
	}
	for _, path := range []string{"/assets/", "/assets/app.css", "/assets/000000000000/app.css", "/assets/../render.go"} {
		if w := get(r, http.MethodGet, path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := get(r, http.MethodPost, r.AssetPath("app.css")); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

func get(r *web.Renderer, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r.Assets().ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

// Ensure that what is vendored brings its licence, and that it and its version are listed.
func TestVendor(t *testing.T) {
	list, err := os.ReadFile("assets/vendor/README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir("assets/vendor")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name() != "README.md" && !strings.Contains(string(list), "`"+f.Name()+"`") {
			t.Errorf("%s is not listed", f.Name())
		}
		if base, ok := strings.CutSuffix(f.Name(), ".min.js"); ok {
			if _, err := os.Stat("assets/vendor/" + base + ".LICENSE"); err != nil {
				t.Error(err)
			}
		}
	}
}

// Ensure that text can be read on every ground that it stands on, light and
// dark: WCAG AA wants 4.5 to 1, and 3 to 1 for the edges of controls.
func TestContrast(t *testing.T) {
	css, err := os.ReadFile("assets/app.css")
	if err != nil {
		t.Fatal(err)
	}
	light, dark, ok := strings.Cut(string(css), "@media (prefers-color-scheme: dark)")
	if !ok {
		t.Fatal("no dark scheme")
	}
	grounds := []string{"ground", "card", "sunken", "log"}
	pairs := map[string][]string{
		"text": append([]string{"bad-soft", "warn-soft", "run-soft", "hit", "hit-now"}, grounds...), "muted": grounds, "accent": append([]string{"run-soft"}, grounds...),
		"ok": grounds, "bad": grounds, "warn": grounds, "on-accent": {"accent"},
		"a0": {"log", "sunken"}, "a1": {"log", "sunken"}, "a2": {"log", "sunken"}, "a3": {"log", "sunken"}, "a4": {"log", "sunken"}, "a5": {"log", "sunken"}, "a6": {"log", "sunken"}, "a7": {"log", "sunken"},
	}
	for scheme, text := range map[string]string{"light": light, "dark": dark[:strings.Index(dark, "}\n}")]} {
		colour := map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z0-9-]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(text, -1) {
			colour[m[1]] = m[2]
		}
		check := func(fg, bg string, least float64) {
			if colour[fg] == "" || colour[bg] == "" {
				t.Fatalf("%s: no colour --%s or --%s", scheme, fg, bg)
			}
			if c := contrast(colour[fg], colour[bg]); c < least {
				t.Errorf("%s: --%s on --%s is %.2f to 1, want %.1f", scheme, fg, bg, c, least)
			}
		}
		for fg, bgs := range pairs {
			for _, bg := range bgs {
				check(fg, bg, 4.5)
			}
		}
		check("edge", "card", 3)
		check("edge", "ground", 3)
	}
}

func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(hex string) float64 {
	var sum float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		if err != nil {
			return math.NaN()
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

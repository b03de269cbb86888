package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"docket/store/ci"
)

// logCalls are the methods of slog.Logger that take keys and values, and where
// those begin.
var logCalls = map[string]int{"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "With": 0, "Log": 3}

// Ensure that no line of the log has a key that is written where it is used:
// each is a constant of its package, and a constant of one name has one value
// everywhere.
func TestLogKeysAreConstants(t *testing.T) {
	values := map[string]string{}
	calls := 0
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if lit := literal(n.Values, i); strings.HasPrefix(name.Name, "key") && lit != "" {
						if old, ok := values[name.Name]; ok && old != lit {
							t.Errorf("%s: %s is %q here and %q elsewhere", path, name.Name, lit, old)
						}
						values[name.Name] = lit
					}
				}
			case *ast.CallExpr:
				call, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || !isLogger(call.X) {
					return true
				}
				from, ok := logCalls[call.Sel.Name]
				if !ok {
					return true
				}
				calls++
				for i := from; i < len(n.Args); i += 2 {
					if literal(n.Args, i) != "" {
						t.Errorf("%s: the line %s has the key %q as it is; use a constant", path, literal(n.Args, 0), literal(n.Args, i))
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil || calls < 50 {
		t.Fatalf("%d lines were found: %v", calls, err)
	}
}

func literal(list []ast.Expr, i int) string {
	if i >= len(list) {
		return ""
	}
	lit, ok := list[i].(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, _ := strconv.Unquote(lit.Value)
	return s
}

// isLogger reports whether an expression is called as loggers are here.
func isLogger(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "log"
	case *ast.SelectorExpr:
		return x.Sel.Name == "log" || x.Sel.Name == "Log"
	case *ast.CallExpr:
		call, ok := x.Fun.(*ast.SelectorExpr)
		return ok && call.Sel.Name == "about"
	}
	return false
}

// Ensure that a log is written as it is configured.
func TestLogFormat(t *testing.T) {
	for format, want := range map[string]string{ci.LogText: "level=WARN msg=hello run=api-1\n", ci.LogJSON: `"level":"WARN","msg":"hello","run":"api-1"}`} {
		var out strings.Builder
		var level slog.LevelVar
		log := newLog(&out, &ci.Config{Log: ci.LogConfig{Level: "warn", Format: format}}, &level)
		log.Info("not told")
		log.Warn("hello", "run", "api-1")
		if text := out.String(); !strings.Contains(text, want) || strings.Contains(text, "not told") {
			t.Errorf("%s: %s", format, text)
		}
	}
}

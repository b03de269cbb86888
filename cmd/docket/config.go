package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"docket/store/ci"
)

// Values that hold where docket.yaml says nothing.
const (
	defaultAddress = "127.0.0.1:8080"
	defaultAPIURL  = "https://api.github.com/"
)

// minRetention is longer than any provider redelivers a webhook (GitHub keeps
// deliveries for three days): a delivery id must not be forgotten before.
const minRetention = 7 * 24 * time.Hour

// Load reads and checks a configuration with its secrets. Relative paths in
// it begin at the file's directory; getenv answers for secrets from the
// environment. The error is a *ConfigError with every fault of the file.
func Load(path string, getenv func(string) string) (*ci.Config, error) {
	text, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	return parseConfig(path, text, getenv, readSecretFile)
}

// readConfig reads the file as it is. Its error is a *ConfigError too.
func readConfig(path string) (string, error) {
	fail := func(format string, args ...any) (string, error) {
		return "", &ConfigError{File: path, Faults: []Fault{{File: path, Message: fmt.Sprintf(format, args...)}}}
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail("there is no such file; write one with `docket init`, or name another with -c FILE")
	case err == nil && info.IsDir():
		return fail("this is a directory; name the file in it, as in -c %s", filepath.Join(path, "docket.yaml"))
	}
	if err == nil {
		var f *os.File
		if f, err = os.Open(path); err == nil {
			defer f.Close()
			var b []byte
			if b, err = io.ReadAll(io.LimitReader(f, maxConfigBytes+1)); err == nil {
				return string(b), nil
			}
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		return fail("the file may not be read; run docket as a user who may")
	}
	return fail("the file cannot be read (%v); name another with -c FILE", err)
}

// parseConfig checks a configuration's text. The path gives relative paths
// their beginning and faults their file.
func parseConfig(path, text string, getenv func(string) string, readFile func(string) ([]byte, error)) (*ci.Config, error) {
	l := &loader{reader: newReader(path), dir: configDir(path), getenv: getenv, readFile: readFile}
	cfg := &ci.Config{}
	if root := l.parse(text); root != nil {
		l.config(root, cfg)
	}
	if err := l.err(); err != nil {
		return nil, err
	}
	return cfg, nil
}

// configDir is the absolute directory of a configuration file.
func configDir(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return filepath.Dir(path)
	}
	return filepath.Dir(abs)
}

// config reads the whole file.
func (l *loader) config(root ast.Node, cfg *ci.Config) {
	o := l.object(root, sectionTop, "docket.yaml")
	if o == nil {
		return
	}
	cfg.DataDir = l.dataDir(o)
	if o.has("public_url") {
		cfg.PublicURL = l.publicURL(o)
	}
	cfg.Listen = l.listen(o)
	cfg.TrustedProxies = l.trustedProxies(o)
	cfg.Limits = l.limits(o)
	cfg.Retention = l.retention(o)
	cfg.Backup = l.backup(o)
	cfg.Log = l.log(o)
	cfg.Traces = l.traces(o)
	cfg.ShutdownGrace = o.duration("shutdown_grace")
	cfg.ScanInterval = o.duration("scan_interval")
	cfg.AdminToken = l.secret(o, "admin_token", secretHeader)
	names := newNamed("integration")
	if o.has("integrations") {
		for _, n := range l.list(o.field("integrations"), "integrations") {
			if in, ok := l.integration(n, names); ok {
				cfg.Integrations = append(cfg.Integrations, in)
			}
		}
	}
	if o.has("projects") {
		l.projects(o, cfg)
	}
}

func (l *loader) dataDir(o *object) string {
	if !o.need("data_dir", "/var/lib/docket") {
		return ""
	}
	s := o.text("data_dir")
	if s == "" {
		o.emptyText("data_dir")
		return ""
	}
	if hasControl(s) {
		o.at("data_dir", "data_dir holds control characters; correct the path")
		return ""
	}
	return l.path(s)
}

func (l *loader) publicURL(o *object) string {
	s := o.address("public_url")
	if strings.ContainsAny(s, "?#") {
		o.at("public_url", "public_url must end with its path; remove what follows ? or #")
		return ""
	}
	return strings.TrimRight(s, "/")
}

func (l *loader) listen(o *object) (list []ci.Listen) {
	if !o.has("listen") {
		return []ci.Listen{{Address: defaultAddress}}
	}
	nodes := l.list(o.field("listen"), "listen")
	if _, isList := l.resolve(o.field("listen")).(*ast.SequenceNode); isList && len(nodes) == 0 {
		o.at("listen", "listen has no address in its list; add one, or remove the key to listen on %s", defaultAddress)
	}
	addresses, sockets := newNamed("address"), newNamed("socket")
	var entries []*object
	for _, n := range nodes {
		lo := l.object(n, sectionListen, "an entry of listen")
		if lo == nil || !lo.need("address", defaultAddress) {
			continue
		}
		one := ci.Listen{Address: lo.text("address")}
		if trouble := listenTrouble(one.Address); trouble != "" {
			lo.at("address", "listen: the address %q %s", one.Address, trouble)
		} else if !strings.HasSuffix(one.Address, ":0") { // any free port, as often as one likes
			addresses.once(l.reader, lo.field("address"), one.Address)
		}
		if lo.has("socket") {
			one.Socket = l.socketName(lo, sockets)
		}
		if lo.has("serve") {
			one.Serve = l.words(lo, "serve")
		}
		one.TLS, one.Redirect = l.tls(lo), lo.flag("redirect")
		list, entries = append(list, one), append(entries, lo)
	}
	l.redirects(entries, list)
	return list
}

// socketName reads the name of a socket that the service manager passes.
func (l *loader) socketName(o *object, names *named) string {
	name := o.text("socket")
	if name == "" {
		o.emptyText("socket")
		return ""
	}
	if hasControl(name) || strings.Contains(name, ":") || len(name) > 255 {
		o.at("socket", "listen: no socket can be named %q; give its FileDescriptorName=, at most 255 characters without a colon", name)
		return ""
	}
	names.once(l.reader, o.field("socket"), name)
	return name
}

// words reads a list of a key's words, each once, at least one.
func (l *loader) words(o *object, key string) (list []string) {
	words := o.key(key).words
	nodes := l.list(o.field(key), o.what+": "+key)
	if _, isList := l.resolve(o.field(key)).(*ast.SequenceNode); isList && len(nodes) == 0 {
		o.at(key, "%s: %s is an empty list; name one of %s, or remove the key", o.what, key, strings.Join(words, ", "))
	}
	for _, n := range nodes {
		w := l.oneOf(n, o.what+": "+key, "", words...)
		if w == "" {
			continue
		}
		if slices.Contains(list, w) {
			l.at(n, "%s: %s has %q twice; keep one", o.what, key, w)
			continue
		}
		list = append(list, w)
	}
	return list
}

// retention returns how long what has ended is kept. What belongs to
// something else goes with it at the latest.
func (l *loader) retention(o *object) (r ci.Retention) {
	if !o.has("retention") {
		return r
	}
	ro := l.object(o.field("retention"), sectionRetention, "retention")
	if ro == nil {
		return r
	}
	r = ci.Retention{Runs: ro.duration("runs"), Bodies: ro.duration("bodies"), Logs: ro.duration("logs")}
	for key, d := range map[string]time.Duration{"bodies": r.Bodies, "logs": r.Logs} {
		if r.Runs > 0 && d > r.Runs {
			ro.at(key, "retention: %s are kept for %s at most, as long as runs are; shorten it, or remove the key", key, shortDuration(r.Runs))
		}
	}
	return r
}

// backup returns how the store is backed up by itself; nil is not at all.
func (l *loader) backup(o *object) *ci.Backup {
	if !o.has("backup") {
		return nil
	}
	bo := l.object(o.field("backup"), sectionBackup, "backup")
	if bo == nil || !bo.need("dir", "/var/backups/docket") {
		return nil
	}
	dir := bo.text("dir")
	switch {
	case dir == "":
		bo.emptyText("dir")
		return nil
	case hasControl(dir):
		bo.at("dir", "backup: dir holds control characters; correct the path")
		return nil
	}
	return &ci.Backup{Dir: l.path(dir), Every: bo.duration("every"), Keep: int(bo.whole("keep"))}
}

func (l *loader) limits(o *object) ci.Limits {
	lo := l.absent(sectionLimits)
	if o.has("limits") {
		if given := l.object(o.field("limits"), sectionLimits, "limits"); given != nil {
			lo = given
		}
	}
	return ci.Limits{
		Body: lo.size("body"), ConcurrentRuns: int(lo.whole("concurrent_runs")), Log: lo.size("log"), FreeSpace: lo.size("free_space"),
	}
}

func (l *loader) log(o *object) ci.LogConfig {
	lo := l.absent(sectionLog)
	if o.has("log") {
		if given := l.object(o.field("log"), sectionLog, "log"); given != nil {
			lo = given
		}
	}
	return ci.LogConfig{Level: lo.oneOf("level"), Format: lo.oneOf("format")}
}

// dataDirOf returns the data directory that a configuration names, though the
// rest of it may be faulty: a running server can be reached all the same.
func dataDirOf(path string) (string, error) {
	text, err := readConfig(path)
	if err != nil {
		return "", err
	}
	l := &loader{reader: newReader(path), dir: configDir(path)}
	root := l.parse(text)
	if root != nil {
		if list, ok := l.entries(l.resolve(root), "docket.yaml", 0); ok {
			top := &object{r: l.reader, node: root, what: "docket.yaml", fields: map[string]entry{}}
			for _, e := range list {
				top.fields[e.name] = e
			}
			dir := l.dataDir(top)
			if dir != "" {
				return dir, nil
			}
		}
	}
	return "", l.err()
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"docket/store/ci"
)

// adminSocket is the name of the admin socket in the data directory.
const adminSocket = "admin.sock"

// apiPrefix is where the API begins.
const apiPrefix = "/api/v1"

// maxAnswer bounds what is read of an answer that is not streamed.
const maxAnswer = 64 << 20

// client talks to one running server.
type client struct {
	http  *http.Client
	base  string // without a slash at its end
	token string // "" over the admin socket
	where string // for people
}

// errNoServer: nothing answers at the admin socket.
type errNoServer struct {
	socket string
	cause  error
}

func (e *errNoServer) Error() string {
	return fmt.Sprintf("no server runs on %s; start it with `docket serve`, or name another with --server URL", filepath.Dir(e.socket))
}

func (e *errNoServer) Unwrap() error { return e.cause }

// connect returns a client for the server that the flags, the environment or
// the configuration name, in this order. Over HTTP it does not try the server
// yet.
func (a *app) connect() (*client, error) {
	url := a.server
	if url == "" {
		url = a.getenv("DOCKET_SERVER")
	}
	token := a.token
	if token == "" {
		token = a.getenv("DOCKET_TOKEN")
	}
	if url == "" {
		dir, err := a.dataDir()
		if err != nil {
			return nil, err
		}
		return socketClient(filepath.Join(dir, adminSocket)), nil
	}
	url = strings.TrimRight(url, "/")
	if trouble := addressTrouble(url, "http", "https"); trouble != "" {
		return nil, &usageError{fmt.Sprintf("the server's address %q %s", redactURL(url), trouble)}
	}
	if token == "" {
		return nil, &usageError{fmt.Sprintf("the server at %s needs a token; give --token or DOCKET_TOKEN (`docket token create` makes one)", url)}
	}
	return &client{http: &http.Client{CheckRedirect: noRedirect}, base: url, token: token, where: url}, nil
}

// remote reports whether the command line or the environment names a server.
func (a *app) remote() bool { return a.server != "" || a.getenv("DOCKET_SERVER") != "" }

// dataDir returns the configured data directory.
func (a *app) dataDir() (string, error) {
	path, err := a.configPath()
	if err != nil {
		return "", err
	}
	return dataDirOf(path)
}

// noRedirect: a token goes to the named server and nowhere else.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// socketClient returns a client for an admin socket.
func socketClient(path string) *client {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := dialSocket(ctx, path)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
				return nil, &errNoServer{path, err}
			}
			if errors.Is(err, fs.ErrPermission) {
				return nil, fmt.Errorf("the admin socket %s may not be used; run this as the user that docket runs as, or use --server URL and a token", path)
			}
			return c, err
		},
	}
	return &client{http: &http.Client{Transport: transport, CheckRedirect: noRedirect}, base: "http://docket", where: path}
}

// maxSocketPath is the longest path that a unix socket's address can hold on Linux.
const maxSocketPath = 107

// dialSocket connects to a unix socket, however long its path is.
func dialSocket(ctx context.Context, path string) (net.Conn, error) {
	short, done, err := shortSocketPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	var d net.Dialer
	return d.DialContext(ctx, "unix", short)
}

// shortSocketPath returns a name that a socket's address can hold for the
// socket at path, good until done is called.
func shortSocketPath(path string) (short string, done func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { dir.Close() }, nil
}

// call is one request to the API.
type call struct {
	method string
	path   string // after the prefix, percent-encoded
	key    string // idempotency key, "" for none
	body   any    // as JSON, nil for none
	accept string
	last   string // Last-Event-ID
}

// open sends a call and returns the answer of a success, whose body the
// caller closes. A refusal is an error with the server's sentence.
func (c *client) open(ctx context.Context, what call) (*http.Response, error) {
	var body io.Reader
	if what.body != nil {
		b, err := json.Marshal(what.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, what.method, c.base+apiPrefix+what.path, body)
	if err != nil {
		return nil, fmt.Errorf("the request to %s cannot be made: %w", c.where, err)
	}
	set := func(name, value string) {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	set("Idempotency-Key", what.key)
	set("Accept", what.accept)
	set("Last-Event-ID", what.last)
	if body != nil {
		set("Content-Type", "application/json")
	}
	if c.token != "" {
		set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.trouble(ctx, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, refusal(resp, c.where)
	}
	return resp, nil
}

// trouble makes one sentence of a request that got no answer.
func (c *client) trouble(ctx context.Context, err error) error {
	var none *errNoServer
	if errors.As(err, &none) {
		return none
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &unreachable{c.where, err}
}

// unreachable: the server did not answer, so what was asked may have happened.
type unreachable struct {
	where string
	cause error
}

func (e *unreachable) Error() string {
	cause := e.cause
	var op *net.OpError
	if errors.As(cause, &op) {
		cause = op
	}
	return fmt.Sprintf("the server at %s did not answer (%v); check that it runs and try again", e.where, cause)
}

func (e *unreachable) Unwrap() error { return e.cause }

// refused is an answer other than success.
type refused struct {
	status  int
	message string
}

func (e *refused) Error() string { return e.message }

// refusal reads problem+json, or says what came instead.
func refusal(resp *http.Response, where string) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var p struct {
		Title       string `json:"title"`
		Detail      string `json:"detail"`
		ExistingRun string `json:"existing_run"`
	}
	if json.Unmarshal(b, &p) != nil || p.Detail == "" && p.Title == "" {
		return &refused{resp.StatusCode, fmt.Sprintf("the server at %s answered %s, not as docket does; check the address", where, resp.Status)}
	}
	message := p.Detail
	if message == "" {
		message = p.Title
	}
	if p.ExistingRun != "" && !strings.Contains(message, p.ExistingRun) {
		message += " (its run is " + p.ExistingRun + ")"
	}
	return &refused{resp.StatusCode, message}
}

// raw sends a call and returns the answer's bytes.
func (c *client) raw(ctx context.Context, what call) ([]byte, error) {
	resp, err := c.open(ctx, what)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, c.trouble(ctx, err)
	}
	if len(b) > maxAnswer {
		return nil, fmt.Errorf("the answer of %s is over %s; ask for less with --limit", c.where, formatSize(maxAnswer))
	}
	return b, nil
}

// get reads a record or listing.
func (c *client) get(ctx context.Context, path string) ([]byte, error) {
	return c.raw(ctx, call{method: http.MethodGet, path: path})
}

// post asks for something to be done and decodes the answer into v.
func (c *client) post(ctx context.Context, path, key string, body, v any) error {
	b, err := c.raw(ctx, call{method: http.MethodPost, path: path, key: key, body: body})
	if err != nil {
		return err
	}
	return decodeAnswer(b, v)
}

// decodeAnswer reads the API's JSON. Members that this docket does not know
// are a newer server's and are passed over.
func decodeAnswer(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return ci.Wrap(ci.CodeMalformed, err, "the server's answer is not as this docket expects it; compare `docket version` on both sides")
	}
	return nil
}

// show prints the server's JSON, or for people what text makes of it.
func (a *app) show(b []byte, v any, text func() error) error {
	if a.json() {
		return indentJSON(a.out, b)
	}
	if err := decodeAnswer(b, v); err != nil {
		return err
	}
	return text()
}

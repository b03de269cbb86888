package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"docket/server"
)

// socketFile is the admin socket's name in the data directory.
const socketFile = "admin.sock"

// httpGrace is how long a request under way may take to end at a shutdown.
const httpGrace = 10 * time.Second

// listener is one address and the server behind it.
type listener struct {
	address string
	what    string
	tcp     bool
	ln      net.Listener
	http    *http.Server
}

// listen opens every configured address and the admin socket, or none.
func listen(d *appliance) (list []*listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range list {
				l.ln.Close()
			}
		}
	}()
	for _, c := range d.config.Listen {
		ln, err := net.Listen("tcp", c.Address)
		if err != nil {
			return list, fmt.Errorf("the address %s cannot be listened on; stop what uses it, or mend `listen` in the configuration: %w", c.Address, err)
		}
		what := "everything"
		if len(c.Serve) > 0 {
			what = strings.Join(c.Serve, ", ")
		}
		list = append(list, &listener{
			address: ln.Addr().String(), what: what, tcp: true, ln: ln,
			http: server.NewHTTPServer(d.server.Handler(c.Serve...)),
		})
	}
	ln, err := listenSocket(filepath.Join(d.config.DataDir, socketFile))
	if err != nil {
		return list, err
	}
	return append(list, &listener{
		address: filepath.Join(d.config.DataDir, socketFile), what: "the command line", ln: ln,
		http: server.NewHTTPServer(d.server.AdminHandler()),
	}), nil
}

// listenSocket makes the admin socket, for its owner alone. One that an
// earlier process left behind is replaced: the store's lock, which is held
// already, says that no other server uses it.
func listenSocket(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the old admin socket %s cannot be removed; remove it by hand: %w", path, err)
	}
	short, done, err := shortSocketPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	// A socket has its mode from the first moment only if its directory lets
	// nobody else in; the data directory does not, and the mode says it again.
	ln, err := net.Listen("unix", short)
	if err != nil {
		return nil, fmt.Errorf("the admin socket %s cannot be made: %w", path, err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false) // its short name may be gone by then
	if err := os.Chmod(path, 0o600); err != nil {
		ln.Close()
		return nil, err
	}
	return ln, nil
}

// serve answers until the listener is shut down.
func (l *listener) serve() error {
	if err := l.http.Serve(l.ln); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("listener %s: %w", l.address, err)
	}
	return nil
}

// shutDown lets requests under way end, for a while.
func (l *listener) shutDown(log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), httpGrace)
	defer cancel()
	if err := l.http.Shutdown(ctx); err != nil {
		log.Warn("requests under way were cut off", "address", l.address, "error", err)
		l.http.Close()
	}
}

// addresses returns the TCP addresses.
func addresses(list []*listener) []string {
	var tcp []string
	for _, l := range list {
		if l.tcp {
			tcp = append(tcp, l.address)
		}
	}
	return tcp
}

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"docket/store/ci"
)

// socketFile is the admin socket's name in the data directory.
const socketFile = "admin.sock"

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
		ln, err := d.given.take(c)
		if err == nil && ln == nil {
			ln, err = listenTCP(c.Address)
		}
		if err != nil {
			return list, err
		}
		what := "everything"
		if len(c.Serve) > 0 {
			what = strings.Join(c.Serve, ", ")
		}
		l := newListener(c.Address, ln.Addr().String(), what, ln, d.server.Handler(c.Serve...), d.log)
		list = append(list, l)
		if c.TLS != nil {
			if l.secure, err = newSecure(d, c.TLS); err != nil {
				return list, err
			}
			l.what += " over TLS"
		}
	}
	d.secure(list)
	if err := d.given.stray(); err != nil {
		return list, err
	}
	path := filepath.Join(d.config.DataDir, socketFile)
	ln, err := d.given.take(ci.Listen{Address: handedAdmin})
	if ul, ok := ln.(*net.UnixListener); ok {
		ul.SetUnlinkOnClose(false)
	}
	if err == nil && ln == nil {
		ln, err = listenSocket(path)
	}
	if err != nil {
		return list, err
	}
	list = append(list, newListener(handedAdmin, path, "the command line", ln, d.server.AdminHandler(), d.log))
	for _, l := range list {
		l.most = connectionsFor(len(list))
	}
	d.listeners = list
	return list, nil
}

func listenTCP(address string) (net.Listener, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("the address %s cannot be listened on; stop what uses it, or mend `listen` in the configuration: %w", address, err)
	}
	return ln, nil
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

// addresses returns the TCP addresses.
func addresses(list []*listener) []string {
	var tcp []string
	for _, l := range list {
		if l.name != handedAdmin {
			tcp = append(tcp, l.address)
		}
	}
	return tcp
}

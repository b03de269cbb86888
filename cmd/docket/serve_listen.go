package main

import (
	"errors"
	"fmt"
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
	for _, l := range list {
		l.most = connectionsFor(len(list), openFiles())
	}
	admin := newListener(handedAdmin, path, "the command line", ln, d.server.AdminHandler(), d.log)
	admin.most = adminConnections
	list = append(list, admin)
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
//
// It is made in a directory that nobody else can enter and moved from there
// once its mode is set: whoever reaches the socket is an admin, so there must
// be no moment at which others do, whatever the data directory's mode and umask.
func listenSocket(path string) (net.Listener, error) {
	nest := path + ".new"
	if err := os.RemoveAll(nest); err != nil {
		return nil, fmt.Errorf("%s, which an earlier start left behind, cannot be removed; remove it by hand: %w", nest, err)
	}
	if err := os.Mkdir(nest, 0o700); err != nil {
		return nil, fmt.Errorf("the admin socket %s cannot be made: %w", path, err)
	}
	defer os.RemoveAll(nest) //nolint:errcheck // the next start removes it
	fresh := filepath.Join(nest, socketFile)
	short, done, err := shortSocketPath(fresh)
	if err != nil {
		return nil, err
	}
	defer done()
	ln, err := net.Listen("unix", short)
	if err != nil {
		return nil, fmt.Errorf("the admin socket %s cannot be made: %w", path, err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false) // its name is another one by then
	if err = os.Chmod(fresh, 0o600); err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the admin socket %s cannot be put in its place; remove what is there by hand: %w", path, err), ln.Close())
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

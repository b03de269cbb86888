package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"

	"docket/store/ci"
)

// handedAdmin is the name under which the admin socket is handed over; no
// configured address looks like it.
const handedAdmin = "admin.sock"

// socket is a listening socket that this process was given at its start.
type socket struct {
	name  string // FileDescriptorName of the service manager, or what the docket before listened on
	ours  bool   // from the docket before
	file  *os.File
	local net.Addr
	taken bool
}

// sockets are those that were given. They stay open, beside the listeners that
// took them, until docket serves.
type sockets []*socket

// activatedSockets takes the sockets that the service manager opened for this
// process, as sd_listen_fds(3) has it. The variables that say so are unset:
// they are not for what docket starts.
func activatedSockets() (sockets, error) {
	var list sockets
	for _, f := range activation.Files(true) {
		s := &socket{name: f.Name(), file: f}
		if err := s.look(); err != nil {
			return nil, fmt.Errorf("the socket %s from the service manager cannot be used; give docket.socket ListenStream= with an IP address and a port, and Accept=no: %w", s.name, err)
		}
		list = append(list, s)
	}
	return list, nil
}

// look finds out where a socket listens.
func (s *socket) look() error {
	fd := int(s.file.Fd())
	if n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil {
		return err
	} else if n == 0 {
		return errors.New("it does not listen")
	}
	ln, err := net.FileListener(s.file)
	if err != nil {
		return err
	}
	defer ln.Close()
	s.local = ln.Addr()
	if ul, ok := ln.(*net.UnixListener); ok {
		ul.SetUnlinkOnClose(false)
		if !s.ours {
			return errors.New("it is a Unix socket")
		}
	}
	return nil
}

// take returns the listener that was given for a configured one, or nil.
func (l sockets) take(want ci.Listen) (net.Listener, error) {
	for _, fits := range []func(*socket) bool{
		func(s *socket) bool { return s.ours && s.name == want.Address },
		func(s *socket) bool { return !s.ours && want.Socket != "" && s.name == want.Socket },
		func(s *socket) bool { return sameAddress(s.local, want.Address) },
	} {
		for _, s := range l {
			if !s.taken && fits(s) {
				s.taken = true
				return net.FileListener(s.file)
			}
		}
	}
	return nil, nil
}

// stray returns an error if the service manager opened a socket that nobody
// took: it would let clients connect and never be answered.
func (l sockets) stray() error {
	var where []string
	for _, s := range l {
		if !s.ours && !s.taken {
			where = append(where, s.local.String())
		}
	}
	if len(where) == 0 {
		return nil
	}
	return fmt.Errorf("the service manager listens on %s for docket, which `listen` in the configuration does not name; mend ListenStream= in docket.socket or `listen`, so that both name the same addresses",
		strings.Join(where, " and "))
}

func (l sockets) close() {
	for _, s := range l {
		s.file.Close()
	}
}

// sameAddress reports whether a socket listens where an address says.
func sameAddress(local net.Addr, address string) bool {
	have, ok := local.(*net.TCPAddr)
	if !ok || strings.HasSuffix(address, ":0") {
		return false
	}
	want, err := net.ResolveTCPAddr("tcp", address)
	if err != nil || want.Port != have.Port {
		return false
	}
	a, _ := netip.AddrFromSlice(have.IP)
	b, _ := netip.AddrFromSlice(want.IP)
	a, b = a.Unmap(), b.Unmap()
	everywhere := !b.IsValid() || b.IsUnspecified()
	return a == b || everywhere && (!a.IsValid() || a.IsUnspecified())
}

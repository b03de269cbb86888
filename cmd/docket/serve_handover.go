package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"docket/store"
	"docket/store/ci"
)

// Variables by which one docket speaks to the next. They hold no secret, and
// who reads one unsets it.
const (
	handoverEnv = "DOCKET_HANDOVER" // to the program that takes over
	rehearseEnv = "DOCKET_REHEARSE" // to the one that rehearses its start
)

// handover is what a program gets from the one before.
type handover struct {
	DataDir   string
	Schema    int  // of the store's file
	Open      bool // the store is closed, so a rehearsal opens it
	Listeners []handedListener
}

// handedListener is one listening socket.
type handedListener struct {
	Name string // the configured address, or handedAdmin
	FD   int    // its file descriptor
}

func (d *appliance) handover() handover {
	h := handover{DataDir: d.config.DataDir, Schema: store.SchemaVersion}
	for _, s := range d.kept {
		h.Listeners = append(h.Listeners, handedListener{Name: s.name})
	}
	return h
}

func (h handover) variable(name string) (string, error) {
	text, err := json.Marshal(h)
	return name + "=" + string(text), err
}

// handedOver reads what the program before left in the environment, nil for
// nothing, and takes it out of there.
func handedOver(variable string) (*handover, error) {
	text, ok := os.LookupEnv(variable)
	if !ok {
		return nil, nil
	}
	if err := os.Unsetenv(variable); err != nil {
		return nil, err
	}
	h := &handover{}
	if err := json.Unmarshal([]byte(text), h); err != nil {
		return nil, fmt.Errorf("the variable %s is docket's own and cannot be read; unset it: %w", variable, err)
	}
	return h, nil
}

// sockets returns the sockets that were handed over.
func (h *handover) sockets() (list sockets, err error) {
	for _, l := range h.Listeners {
		unix.CloseOnExec(l.FD)
		s := &socket{name: l.Name, ours: true, file: os.NewFile(uintptr(l.FD), l.Name)}
		if s.file == nil {
			return nil, fmt.Errorf("the socket %s was not handed over; stop docket and start it again", l.Name)
		}
		if err := s.look(); err != nil {
			return nil, fmt.Errorf("the socket %s was not handed over; stop docket and start it again: %w", l.Name, err)
		}
		list = append(list, s)
	}
	return list, nil
}

// rehearsed is the last that a program says that can take over.
const rehearsed = "docket: ready to take over\n"

// rehearse is what serve does in a program that rehearses its start: all of
// it, as far as another docket can still be running, and nothing that stays.
func (a *app) rehearse(h *handover) error {
	if h == nil {
		return nil
	}
	cfg, _, err := a.load()
	if err != nil {
		return err
	}
	if err := h.fits(cfg); err != nil {
		return err
	}
	if h.Open {
		s, err := store.Open(filepath.Join(cfg.DataDir, storeFile), store.Options{})
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			return err
		}
	}
	_, err = fmt.Fprint(a.out, rehearsed)
	return err
}

// fits says whether this program can take over with a configuration: it knows
// the store, and what it listens on beyond the inherited sockets is free.
func (h *handover) fits(cfg *ci.Config) error {
	if cfg.DataDir != h.DataDir {
		return fmt.Errorf("data_dir was %s and is now %s; stop docket and start it again to change it", h.DataDir, cfg.DataDir)
	}
	if h.Schema > store.SchemaVersion {
		return fmt.Errorf("the store has schema version %d, and this docket knows only up to %d; keep the newer docket", h.Schema, store.SchemaVersion)
	}
	inherited := map[string]int{}
	for _, l := range h.Listeners {
		inherited[l.Name]++
	}
	for _, c := range cfg.Listen {
		if inherited[c.Address] > 0 {
			inherited[c.Address]--
			continue
		}
		ln, err := listenTCP(c.Address)
		if err != nil {
			return err
		}
		ln.Close()
	}
	return nil
}

// rehearseTimeout is how long a rehearsal may take, beside what a store of a
// size may take that is given a new schema: migrateRate is a slow disk's, in
// bytes a second. One that is ended meanwhile leaves the old store.
const (
	rehearseTimeout = 2 * time.Minute
	migrateRate     = 8 << 20
)

// rehearsalFor returns how long a rehearsal may take that opens the store.
func rehearsalFor(storeSize int64) time.Duration {
	return rehearseTimeout + time.Duration(storeSize/migrateRate)*time.Second
}

// rehearseNext lets the program that lies where this one was started from say
// whether it can take over; open says that it may open the store.
func (d *appliance) rehearseNext(ctx context.Context, open bool) error {
	h := d.handover()
	h.Open = open
	variable, err := h.variable(rehearseEnv)
	if err != nil {
		return err
	}
	limit := rehearseTimeout
	if st, err := os.Stat(filepath.Join(h.DataDir, storeFile)); open && err == nil {
		limit = rehearsalFor(st.Size())
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, d.program, os.Args[1:]...)
	cmd.Env = append(os.Environ(), variable)
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the new program does not start (%w): %s", err, strings.TrimSpace(said.String()))
	}
	if !strings.HasSuffix(said.String(), rehearsed) {
		return errors.New("the new program does not know how to take over; stop docket and start it again")
	}
	return nil
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"docket/server"
)

// maxPasswordLine bounds what is read for a password.
const maxPasswordLine = 64 << 10

// newPassword asks for a user's new password: twice and without an echo at a
// terminal, else it takes the first line of stdin.
func (a *app) newPassword(ctx context.Context, name string) (string, error) {
	tty, ok := a.in.(*os.File)
	if !ok || !term.IsTerminal(int(tty.Fd())) {
		line, err := bufio.NewReader(io.LimitReader(a.in, maxPasswordLine)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("the password cannot be read from stdin: %w", err)
		}
		password := strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		return password, server.CheckPassword(password)
	}
	password, err := a.ask(ctx, tty, "new password for "+printableText(name)+": ")
	if err != nil {
		return "", err
	}
	if err := server.CheckPassword(password); err != nil {
		return "", err
	}
	again, err := a.ask(ctx, tty, "the same again: ")
	if err == nil && again != password {
		err = errors.New("the two passwords differ, so nothing was changed; try again")
	}
	return password, err
}

// ask reads a line from a terminal without an echo. When ctx ends the terminal
// is given back as it was; the read that nobody waits for any more ends with
// the process, for a read from a terminal cannot be called off.
func (a *app) ask(ctx context.Context, tty *os.File, prompt string) (string, error) {
	fd := int(tty.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	fmt.Fprint(a.err, prompt)
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() {
		b, err := term.ReadPassword(fd)
		read <- line{b, err}
	}()
	select {
	case l := <-read:
		fmt.Fprintln(a.err)
		if errors.Is(l.err, io.EOF) {
			return "", errors.New("no password was given, so nothing was changed")
		}
		return string(l.text), l.err
	case <-ctx.Done():
		fmt.Fprintln(a.err)
		return "", errors.Join(ctx.Err(), term.Restore(fd, before))
	}
}

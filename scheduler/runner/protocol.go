package runner

import (
	"encoding/gob"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// The server and a supervisor talk over a SOCK_SEQPACKET pair, one JSON
// message each. A command is too long for a message: it travels as a file in
// memory whose descriptor comes with the message, and with it those that
// become its stdout and stderr, and its descriptor 3 where it has one.

// Operations of the server.
const (
	opRun  = "run"  // start a command; with three descriptors, or four
	opTerm = "term" // SIGTERM to the tree
	opKill = "kill" // SIGKILL to the tree
)

// message is an operation, or a supervisor's answer to opRun.
type message struct {
	Op string `json:"op,omitempty"`

	Exit      int    `json:"exit,omitempty"`      // of the command, 128+n after signal n
	Signal    int    `json:"signal,omitempty"`    // that ended the command
	Leftovers int    `json:"leftovers,omitempty"` // processes that outlived the command and were ended
	Killed    bool   `json:"killed,omitempty"`    // opKill found something alive
	Error     string `json:"error,omitempty"`     // why the command could not be started
}

// command is what a supervisor is asked to start.
type command struct {
	Path string
	Argv []string
	Env  []string
	Dir  string
}

// maxMessage bounds a message in bytes, maxError the text of an error in it.
const (
	maxMessage = 8 << 10
	maxError   = 1 << 10
)

// sendMessage sends m and copies of some descriptors.
func sendMessage(c *net.UnixConn, m message, fds ...int) error {
	if len(m.Error) > maxError {
		m.Error = m.Error[:maxError]
	}
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	_, _, err = c.WriteMsgUnix(b, rights, nil)
	return err
}

// receiveMessage returns the next message and the descriptors that came with
// it, none of which a program started later inherits. The caller closes them.
func receiveMessage(c *net.UnixConn) (message, []int, error) {
	b := make([]byte, maxMessage)
	oob := make([]byte, unix.CmsgSpace(4*4))
	n, oobn, _, _, err := c.ReadMsgUnix(b, oob)
	if err != nil {
		return message{}, nil, err
	}
	if n == 0 {
		return message{}, nil, io.EOF
	}
	var fds []int
	if oobn > 0 {
		control, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil {
			return message{}, nil, err
		}
		for _, part := range control {
			if got, err := unix.ParseUnixRights(&part); err == nil {
				fds = append(fds, got...)
			}
		}
	}
	var m message
	if err := json.Unmarshal(b[:n], &m); err != nil {
		closeAll(fds)
		return message{}, nil, err
	}
	return m, fds, nil
}

// commandFile returns a file in memory that holds c.
func commandFile(c command) (*os.File, error) {
	fd, err := unix.MemfdCreate("command", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "command")
	if err := gob.NewEncoder(f).Encode(c); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// readCommand reads what commandFile wrote, every byte of it: JSON would
// replace what is not UTF-8.
func readCommand(fd int) (c command, err error) {
	f := os.NewFile(uintptr(fd), "command")
	defer f.Close()
	err = gob.NewDecoder(f).Decode(&c)
	return c, err
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

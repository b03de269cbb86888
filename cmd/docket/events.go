package main

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// maxEventLine bounds one line of an event stream.
const maxEventLine = 16 << 20

// event is one event of a text/event-stream.
type event struct {
	id   string
	kind string // "message" where the stream names none
	data string
}

// eventReader reads events as the HTML standard has them.
type eventReader struct{ r *bufio.Reader }

func newEventReader(r io.Reader) *eventReader {
	return &eventReader{bufio.NewReaderSize(r, 64<<10)}
}

// next returns the next whole event. What follows the last blank line is half
// an event and is dropped; io.EOF is the stream's end.
func (er *eventReader) next() (event, error) {
	e := event{kind: "message"}
	var data []string
	some := false
	for {
		line, err := er.line()
		if err != nil {
			return event{}, err
		}
		if line == "" {
			if !some {
				continue
			}
			e.data = strings.Join(data, "\n")
			return e, nil
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			e.id, some = value, true
		case "event":
			e.kind, some = value, true
		case "data":
			data, some = append(data, value), true
		}
	}
}

func (er *eventReader) line() (string, error) {
	var b strings.Builder
	for {
		part, err := er.r.ReadSlice('\n')
		b.Write(part)
		switch {
		case err == nil:
			return strings.TrimRight(b.String(), "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		case b.Len() > maxEventLine:
			return "", errors.New("a line of the event stream is over 16 MiB")
		}
	}
}

package main

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// Ensure that on a terminal a log shows its colours and can do nothing else to
// the terminal, however it comes; in a file it has every byte.
func TestLogsCannotSteerATerminal(t *testing.T) {
	const hostile = "\x1b[31mred\x1b[0m é\r\n" + // colours and line ends stay
		"50%\r\x1b[K100%\n" +
		"\x1b]52;c;aGk=\a\x1b]0;title\x1b\\" + // the clipboard, the window's title
		"\x1b[2J\x1b[1;1H\x1b[6n\x1bP+q\x1b\\\u009b2J\b\x07\x82\n" + // the screen, an answer, C1, not UTF-8
		"\u202eevil\n" +
		"\x1b["
	const shown = "\x1b[31mred\x1b[0m é\r\n50%\r\x1b[K100%\n" +
		"^[]52;c;aGk=�^[]0;title^[\\^[[2J^[[1;1H^[[6n^[P+q^[\\�2J���\n�evil\n^[["
	w := newWorld(t)
	api := w.serve("d")
	for _, follow := range []bool{false, true} {
		args := []string{"runs", "logs", "hello-42"}
		want := shown
		if follow {
			args = append(args, "-f")
			var events strings.Builder
			for i, b := range []rune(strings.ToValidUTF8(hostile, "\ufffd")) {
				events.WriteString(chunk(i+1, string(b))) // each by itself
			}
			api.on("GET /api/v1/runs/hello-42/logs", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, events.String()+"event: end\ndata: {}\n\n")
			})
		} else {
			api.on("GET /api/v1/runs/hello-42/logs", jsonAnswer(200, hostile))
			if out := w.must(args...); out != hostile {
				t.Errorf("in a pipe: %q", out)
			}
		}
		x := newTerminal(t)
		if code := run(t.Context(), args, strings.NewReader(""), x.tty, x.tty, func(k string) string { return w.env[k] }); code != exitDone {
			t.Fatalf("exit code %d", code)
		}
		want = strings.ReplaceAll(want, "\n", "\r\n") // as the terminal's line discipline has it
		x.wait(want, true)
	}
}

// Ensure that whatever comes, however it is cut, a terminal gets no control but
// colours, what erases in the line, tabs and line ends, and the same each time.
func FuzzTerminal(f *testing.F) {
	f.Add([]byte("\x1b[31mred\x1b[0m\x1b[K\x1b[2J\x1b]0;x\a\xc2\x9b\r\n"), uint(4))
	f.Add([]byte("\x1b[1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;20;21;22;23;24;25m\x1b"), uint(66))
	f.Add([]byte("\x1b\x1b[1\x1b[m\xe2\x80\xae\x1b["), uint(3))
	allowed := regexp.MustCompile(`^\x1b\[[0-9;:]*[mK]`)
	f.Fuzz(func(t *testing.T, b []byte, cut uint) {
		at := int(cut % uint(len(b)+1))
		once, twice := onTerminal(t, b), onTerminal(t, b[:at], b[at:])
		if once != twice {
			t.Fatalf("cut at %d: %q and %q", at, once, twice)
		}
		if !utf8.ValidString(once) {
			t.Fatalf("not UTF-8: %q", once)
		}
		for rest := once; rest != ""; {
			if seq := allowed.FindString(rest); seq != "" {
				rest = rest[len(seq):]
				continue
			}
			r, size := utf8.DecodeRuneInString(rest)
			if r < ' ' && !strings.ContainsRune("\t\r\n", r) || r >= 0x7f && r <= 0x9f {
				t.Fatalf("%q passes in %q", r, once)
			}
			rest = rest[size:]
		}
	})
}

func onTerminal(t *testing.T, parts ...[]byte) string {
	t.Helper()
	var out bytes.Buffer
	w := &terminalWriter{w: &out}
	for _, p := range parts {
		if n, err := w.Write(p); n != len(p) || err != nil {
			t.Fatalf("%d of %d, %v", n, len(p), err)
		}
	}
	if err := w.flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

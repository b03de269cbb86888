package web_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"

	"docket/web"
)

// draw returns the lines of output that came in chunks, the last one also if
// it has not ended.
func draw(chunks ...string) []string {
	l := web.NewLogRenderer()
	var list []string
	for _, c := range chunks {
		for _, line := range l.Write(now(), false, []byte(c)) {
			list = append(list, string(line.HTML))
		}
	}
	if p, ok := l.Partial(); ok {
		list = append(list, string(p.HTML))
	}
	return list
}

// Ensure that whatever a step prints becomes lines that can be read and do nothing.
func TestLogRenderer(t *testing.T) {
	link := func(href, text string) string {
		return `<a rel="nofollow noopener noreferrer" href="` + href + `">` + text + `</a>`
	}
	for name, c := range map[string]struct {
		in   []string
		want []string
	}{
		"lines":                                 {[]string{"a\nb\n"}, []string{"a", "b"}},
		"no newline at the end":                 {[]string{"a\nb"}, []string{"a", "b"}},
		"empty lines":                           {[]string{"\n\n\n"}, []string{"", "", ""}},
		"CR LF":                                 {[]string{"a\r\nb\r\n"}, []string{"a", "b"}},
		"CR and LF in two chunks":               {[]string{"a\r", "\nb"}, []string{"a", "b"}},
		"a carriage return begins anew":         {[]string{"10%\r55%\rdone\n"}, []string{"done"}},
		"what comes last may be shorter":        {[]string{"downloading\rok\n"}, []string{"ok"}},
		"a trailing one keeps the line":         {[]string{"100%\r"}, []string{"100%"}},
		"and many":                              {[]string{strings.Repeat("50%\r", 100_000) + "100%\n"}, []string{"100%"}},
		"the cursor to column 1":                {[]string{"a\x1b[1Gb\x1b[Gc\x1b[2Kd\n"}, []string{"d"}},
		"backspace":                             {[]string{"|\b/\b-\bé\bok\n"}, []string{"ok"}},
		"HTML":                                  {[]string{`<script>"&'` + "\n"}, []string{"&lt;script&gt;&#34;&amp;&#39;"}},
		"HTML in colour":                        {[]string{"\x1b[31m<script>\n"}, []string{`<span class="term-fg31">&lt;script&gt;</span>`}},
		"a colour goes on on the next":          {[]string{"\x1b[31ma\nb\x1b[0mc\n"}, []string{`<span class="term-fg31">a</span>`, `<span class="term-fg31">b</span>c`}},
		"a colour cut in two":                   {[]string{"\x1b[3", "1ma\n"}, []string{`<span class="term-fg31">a</span>`}},
		"a colour of 256":                       {[]string{"\x1b[38;5;208ma\n"}, []string{`<span class="term-fgi93">a</span>`}},
		"a colour of 16 million":                {[]string{"\x1b[38;2;200;10;10ma\x1b[48:2::0:0:200mb\n"}, []string{`<span class="term-fg31">a</span><span class="term-fg31 term-bg44">b</span>`}},
		"weights":                               {[]string{"\x1b[1;4ma\x1b[22;24mb\n"}, []string{`<span class="term-fg1 term-fg4">a</span>b`}},
		"reversed":                              {[]string{"\x1b[7;31ma\n"}, []string{`<span class="term-bg41">a</span>`}},
		"a colour before a return":              {[]string{"\x1b[31mred\rplain?\n"}, []string{`<span class="term-fg31">plain?</span>`}},
		"NUL, bell and the like":                {[]string{"a\x00b\x07c\x0bd\x7fe\n"}, []string{"abcde"}},
		"bytes of gzip":                         {[]string{"\x82\x1f\x8b\x00\n"}, []string{"\ufffd\ufffd"}},
		"a character cut in two":                {[]string{"caf\xc3", "\xa9\n"}, []string{"café"}},
		"a control of two bytes":                {[]string{"a\u009b31mb\n"}, []string{"a\ufffd31mb"}},
		"a title":                               {[]string{"\x1b]0;evil\x07a\x1b]2;evil\x1b\\b\n"}, []string{"ab"}},
		"a link":                                {[]string{"\x1b]8;id=1;https://example.org/?a=1&b=2\x1b\\here\x1b]8;;\x1b\\ there\n"}, []string{link("https://example.org/?a=1&amp;b=2", "here") + " there"}},
		"a link to javascript":                  {[]string{"\x1b]8;;javascript:alert(1)\x07here\x1b]8;;\x07\n"}, []string{"here"}},
		"a link with a disguised scheme":        {[]string{"\x1b]8;;JaVaScRiPt:alert(1)//https://x\x07a\x1b]8;;\x07\x1b]8;;/etc\x07b\x1b]8;;data:text/html,x\x07c\n"}, []string{"abc"}},
		"a link with a quote":                   {[]string{"\x1b]8;;https://example.org/\"onclick=x\x07a\x1b]8;;\x07\n"}, []string{link("https://example.org/%22onclick=x", "a")}},
		"an image, and sequences of one vendor": {[]string{"\x1b]1338;url=https://evil.example/x.png\x07\x1b]1339;url=javascript:1;content=a\x07\x1b_bk;t=123\x07b\n"}, []string{"b"}},
		"cursor moves and other sequences":      {[]string{"\x1b[2A\x1b[10;10H\x1b[2J\x1b[?25l\x1b(Ba\x1b[6n\x1bM\x1b7\x1b8\x1b=b\x1b[31~c\n"}, []string{"abc"}},
		"a sequence that never ends":            {[]string{"a\x1b]8;;https://x" + strings.Repeat("y", 10_000) + "\nb\n"}, []string{"a", "b"}},
		"a sequence in a sequence":              {[]string{"\x1b[3\x1b[31ma\x1b\x1b[0mb\n"}, []string{`<span class="term-fg31">a</span>b`}},
		"tabs":                                  {[]string{"a\tb\n"}, []string{"a\tb"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := draw(c.in...)
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			whole := strings.Join(c.in, "")
			if len(whole) > 1000 {
				return
			}
			bytewise := draw(strings.Split(hexsplit(whole), "\xff\xff")...)
			if fmt.Sprintf("%q", bytewise) != fmt.Sprintf("%q", c.want) {
				t.Errorf("byte by byte: %q", bytewise)
			}
		})
	}
}

// hexsplit puts a mark between any two bytes.
func hexsplit(s string) string {
	parts := make([]string, len(s))
	for i := range len(s) {
		parts[i] = s[i : i+1]
	}
	return strings.Join(parts, "\xff\xff")
}

// Ensure that a line of any length costs little, and says what is left out.
func TestLogRendererLongLine(t *testing.T) {
	l := web.NewLogRenderer()
	chunk := bytes.Repeat([]byte("é123456789"), 1000)
	for range 1000 {
		l.Write(now(), false, chunk)
	}
	lines := l.Write(now(), false, []byte("\nnext\n"))
	if len(lines) != 2 || lines[1].HTML != "next" || lines[1].N != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	s := string(lines[0].HTML)
	if len(s) > web.MaxLine+200 || !strings.Contains(s, "MiB more in this line") || !utf8.ValidString(s) || strings.Contains(s, "\ufffd") {
		t.Errorf("%d bytes, ending in %q", len(s), s[len(s)-100:])
	}
}

// Ensure that docket's own words are told from the step's.
func TestLogRendererNotice(t *testing.T) {
	l := web.NewLogRenderer()
	l.Write(now(), false, []byte("half a line"))
	lines := l.Write(now().Add(time.Second), true, []byte("log limit reached\n"))
	if len(lines) != 2 || lines[0].Notice || !lines[1].Notice || lines[0].HTML != "half a line" || !lines[0].At.Equal(now()) {
		t.Errorf("%+v", lines)
	}
}

// Ensure that a page shows a window, and the stream what came since.
func TestLogCollector(t *testing.T) {
	write := func(c *web.LogCollector, from, to int) {
		for i := from; i <= to; i++ {
			c.Write(0, "test", now(), false, fmt.Appendf(nil, "line %d\n", i))
		}
	}
	names := []string{"test", "deploy"}
	for name, tc := range map[string]struct {
		window      web.LogWindow
		first, last int
		partial     bool
	}{
		"the end":       {web.LogWindow{}, 3001, 5000, true},
		"of another":    {web.LogWindow{Step: "deploy", From: 10}, 3001, 5000, true},
		"from a line":   {web.LogWindow{Step: "test", From: 101}, 101, 2100, false},
		"the last ones": {web.LogWindow{Step: "test", From: 4900}, 4900, 5000, true},
		"all":           {web.LogWindow{Step: "test", All: true}, 1, 5000, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := web.NewLogCollector(tc.window)
			write(c, 1, 5000)
			c.Write(0, "test", now(), false, []byte("half"))
			steps := c.Steps(names)
			if len(steps) != 2 || steps[1].Name != "deploy" || steps[1].Total != 0 {
				t.Fatalf("%d steps", len(steps))
			}
			s := steps[0]
			if s.Lines[0].N != tc.first || s.Lines[len(s.Lines)-1].N != tc.last || s.Total != 5000 || (s.Partial != nil) != tc.partial {
				t.Errorf("%d to %d of %d, partial %v", s.Lines[0].N, s.Lines[len(s.Lines)-1].N, s.Total, s.Partial != nil)
			}
			if want := fmt.Sprintf("line %d", tc.first); string(s.Lines[0].HTML) != want {
				t.Errorf("%q, want %q", s.Lines[0].HTML, want)
			}
		})
	}
	c := web.NewLogCollector(web.LogWindow{})
	write(c, 1, 3)
	if got := c.Take(names); len(got) != 1 || len(got[0].Lines) != 3 {
		t.Errorf("first take: %+v", got)
	}
	if got := c.Take(names); len(got) != 0 {
		t.Errorf("second take: %+v", got)
	}
	write(c, 4, 4)
	c.Write(0, "test", now(), false, []byte("half"))
	if got := c.Take(names); len(got) != 1 || len(got[0].Lines) != 1 || got[0].Lines[0].N != 4 || got[0].Partial == nil || got[0].Partial.N != 5 {
		t.Errorf("third take: %+v", got)
	}
	write(c, 5, 9000)
	if got := c.Take(names); len(got[0].Lines) != web.WindowLines || got[0].Lines[0].N != 7001 {
		t.Errorf("fourth take: %d lines from %d", len(got[0].Lines), got[0].Lines[0].N)
	}
}

// Ensure that lines have addresses that are theirs alone.
func TestSlugs(t *testing.T) {
	got := web.Slugs([]string{"test", "a b", "a_b", "preparation", "", "é\"><"})
	want := []string{"preparation", "test", "a_b", "a_b~2", "preparation~2", "~2", "____"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Ensure that no bytes, however they are cut, make anything but text, spans
// with known classes and links to the web.
func FuzzLogRenderer(f *testing.F) {
	f.Add([]byte("a\x1b[31;1mb\x1b]8;;https://example.org\x07c\r\n"), uint(3))
	f.Add([]byte("\x1b]8;;javascript:x\x07<script>\x82\x1f\x8b\x00\x1b[38;2;1;2;3m"), uint(7))
	f.Add([]byte("\x1b[48:5:1;m\xc2\x1b[0m\x9b\b\b\r\x1bPx\x1b\\"), uint(2))
	f.Add([]byte("\x1b[48:5:10m\xc2\x1b[m0\b"), uint(26))
	f.Fuzz(func(t *testing.T, b []byte, cut uint) {
		at := int(cut % uint(len(b)+1))
		once, twice := draw(string(b)), draw(string(b[:at]), string(b[at:]))
		if fmt.Sprintf("%q", once) != fmt.Sprintf("%q", twice) {
			t.Fatalf("cut at %d:\n%q\n%q", at, once, twice)
		}
		for _, line := range once {
			checkLine(t, line)
		}
	})
}

func checkLine(t *testing.T, line string) {
	t.Helper()
	if !utf8.ValidString(line) {
		t.Fatalf("not UTF-8: %q", line)
	}
	for _, r := range line {
		if r < 0x20 && r != '\t' || r >= 0x7f && r < 0xa0 {
			t.Fatalf("control character in %q", line)
		}
	}
	z := html.NewTokenizer(strings.NewReader(line))
	for z.Next() != html.ErrorToken {
		tok := z.Token()
		switch {
		case tok.Type == html.TextToken, tok.Type == html.EndTagToken && (tok.Data == "a" || tok.Data == "span"):
		case tok.Type == html.StartTagToken && tok.Data == "span" && len(tok.Attr) == 1 && tok.Attr[0].Key == "class" &&
			strings.Trim(tok.Attr[0].Val, "abcdefghijklmnopqrstuvwxyz0123456789- ") == "":
		case tok.Type == html.StartTagToken && tok.Data == "a" && len(tok.Attr) == 2 && tok.Attr[1].Key == "href" &&
			(strings.HasPrefix(tok.Attr[1].Val, "https://") || strings.HasPrefix(tok.Attr[1].Val, "http://")):
		default:
			t.Fatalf("%s in %q", tok, line)
		}
	}
}

package runner

import (
	"strings"
	"testing"

	"docket/store/ci"

	"pgregory.net/rapid"
)

// naive masks a whole text: every byte that belongs to some pattern is
// covered, each covered stretch of overlapping patterns becomes one mask.
func naive(values []string, text string) string {
	var patterns []string
	for _, v := range values {
		if v != "" {
			patterns = append(patterns, v)
		}
		for _, l := range strings.Split(v, "\n") {
			if l = strings.TrimSuffix(l, "\r"); len(l) >= 8 {
				patterns = append(patterns, l)
			}
		}
	}
	var out strings.Builder
	end := 0
	for i := range len(text) {
		longest := 0
		for _, p := range patterns {
			if len(p) > longest && strings.HasPrefix(text[i:], p) {
				longest = len(p)
			}
		}
		if longest > 0 && i >= end {
			out.WriteString(ci.Mask)
		}
		end = max(end, i+longest)
		if i >= end {
			out.WriteByte(text[i])
		}
	}
	return out.String()
}

// Ensure that masking in pieces, wherever they are cut, is masking the whole.
func TestMaskInPieces(t *testing.T) {
	letters := rapid.StringOfN(rapid.SampledFrom([]rune("ab\n")), 0, 14, -1)
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(letters, 0, 4).Draw(t, "secrets")
		pieces := rapid.SliceOfN(letters, 0, 12).Draw(t, "pieces")
		for i := range pieces { // make secrets likely to be met
			if len(values) > 0 && rapid.Bool().Draw(t, "secret") {
				pieces[i] += rapid.SampledFrom(values).Draw(t, "which")
			}
		}
		text := strings.Join(pieces, "")
		st := stream{m: newMasker(values)}
		var got strings.Builder
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			got.Write(st.write([]byte(rest[:n])))
			rest = rest[n:]
		}
		got.Write(st.flush())
		if want := naive(values, text); got.String() != want {
			t.Fatalf("secrets %q, text %q: got %q, want %q", values, text, got.String(), want)
		}
	})
}

// Ensure that only a tail that can still become a secret is held back.
func TestMaskHoldsLittle(t *testing.T) {
	st := stream{m: newMasker([]string{"secret-value"})}
	if got := string(st.write([]byte("password: sec"))); got != "password: " {
		t.Errorf("got %q", got)
	}
	if got := string(st.write([]byte("ond"))); got != "second" {
		t.Errorf("got %q", got)
	}
}

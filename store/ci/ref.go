package ci

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxRef is the longest full ref that docket takes, in bytes.
const MaxRef = 1024

// ValidRef reports whether ref is a full ref that docket takes; see RefFault.
func ValidRef(ref string) bool { return RefFault(ref) == "" }

// RefFault says what keeps ref from being a full ref, as the end of a sentence
// that begins with its name, and "" if nothing does. The rules are those of
// git-check-ref-format(1); beyond them a ref begins with refs/, is UTF-8
// without control characters and has at most MaxRef bytes.
func RefFault(ref string) string {
	rest, ok := strings.CutPrefix(ref, "refs/")
	switch {
	case len(ref) > MaxRef:
		return "is longer than 1024 bytes"
	case !ok:
		return "does not begin with refs/"
	case !strings.Contains(rest, "/"):
		return "names no branch, tag or other ref"
	case !utf8.ValidString(ref):
		return "is not UTF-8"
	case strings.Contains(ref, ".."):
		return `contains ".."`
	case strings.Contains(ref, "@{"):
		return `contains "@{"`
	case strings.HasSuffix(ref, "."):
		return "ends with a dot"
	}
	for _, r := range ref {
		switch {
		case r == ' ':
			return "contains a space"
		case unicode.IsControl(r):
			return "contains a control character"
		case strings.ContainsRune(`~^:?*[\`, r):
			return "contains " + string(r)
		}
	}
	for part := range strings.SplitSeq(ref, "/") {
		switch {
		case part == "":
			return "has an empty part between slashes or at its end"
		case part[0] == '.':
			return "has a part that begins with a dot"
		case strings.HasSuffix(part, ".lock"):
			return "has a part that ends with .lock"
		}
	}
	return ""
}

package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"docket/store/ci"
)

// Bounds of a request, in bytes.
const (
	maxRefName = 1000
	maxReason  = 1000
)

// Normalized is a request with every default spelled out, so that requests
// which ask for the same are equal. Exactly one of Branch and Tag is set, and
// every declared input has a value.
type Normalized struct {
	Project string `json:"project"`
	ci.Request
}

// Ref returns the full ref.
func (n Normalized) Ref() string {
	if n.Tag != "" {
		return "refs/tags/" + n.Tag
	}
	return "refs/heads/" + n.Branch
}

// Digest returns "sha256:" and hex digits over the request and its project.
func (n Normalized) Digest() string {
	b, err := json.Marshal(n) // sorts the inputs
	if err != nil {
		panic(err) // a request holds only strings
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Normalize checks a request against its project and spells it out. Every
// error is CodeInvalid and says which field to mend.
func Normalize(p *ci.Project, r ci.Request) (Normalized, error) {
	n := Normalized{Project: p.Name, Request: r}
	switch {
	case r.Branch != "" && r.Tag != "":
		return Normalized{}, invalid("branch and tag are both given; name one of them")
	case r.Tag != "":
		if err := checkRefName("tag", r.Tag, n.Ref()); err != nil {
			return Normalized{}, err
		}
	default:
		if n.Branch == "" {
			n.Branch = p.DefaultBranch
		}
		if n.Branch == "" {
			return Normalized{}, invalid("neither branch nor tag is given, and project %q has no default_branch; name one", p.Name)
		}
		if err := checkRefName("branch", n.Branch, n.Ref()); err != nil {
			return Normalized{}, err
		}
	}
	if r.Commit != "" && !ci.IsCommit(r.Commit) {
		return Normalized{}, invalid("commit %q is not a full commit id; give all 40 or 64 lower-case hex digits, or leave it out for the head", clip(r.Commit))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Inputs)) {
		if err := checkInput(p, name, r.Inputs[name]); err != nil {
			return Normalized{}, err
		}
	}
	n.Inputs = inputs(p, r.Inputs)
	if err := checkReason(r.Reason); err != nil {
		return Normalized{}, err
	}
	return n, nil
}

// checkRefName checks a short branch or tag name by the full ref it stands for.
func checkRefName(what, name, ref string) error {
	switch {
	case len(name) > maxRefName:
		return invalid("%s is longer than %d bytes", what, maxRefName)
	case strings.HasPrefix(name, "refs/"):
		return invalid("%s %q is a full ref; give the short name, without refs/heads/ or refs/tags/", what, clip(name))
	case name[0] == '-':
		return invalid("%s %q begins with a dash, which git does not take for a name", what, clip(name))
	}
	if fault := ci.RefFault(ref); fault != "" {
		return invalid("%s %q %s, which git does not take; give the name of an existing %s", what, clip(name), fault, what)
	}
	return nil
}

func checkInput(p *ci.Project, name, value string) error {
	i := slices.IndexFunc(p.Inputs, func(in ci.Input) bool { return in.Name == name })
	if i < 0 {
		if len(p.Inputs) == 0 {
			return invalid("input %q is not declared: project %q takes none", clip(name), p.Name)
		}
		var names []string
		for _, in := range p.Inputs {
			names = append(names, in.Name)
		}
		return invalid("input %q is not declared; project %q takes %s", clip(name), p.Name, strings.Join(names, ", "))
	}
	switch in := p.Inputs[i]; {
	case len(value) > ci.MaxInput:
		return invalid("input %q has %d bytes; an input may have %d", name, len(value), ci.MaxInput)
	case !utf8.ValidString(value):
		return invalid("input %q is not valid UTF-8", name)
	case strings.ContainsRune(value, 0):
		return invalid("input %q contains a NUL, which no environment can hold", name)
	case len(in.Options) > 0 && !slices.Contains(in.Options, value):
		return invalid("input %q is %q; choose one of %s", name, clip(value), strings.Join(in.Options, ", "))
	}
	return nil
}

func checkReason(reason string) error {
	switch {
	case len(reason) > maxReason:
		return invalid("reason has %d bytes; it may have %d", len(reason), maxReason)
	case !utf8.ValidString(reason):
		return invalid("reason is not valid UTF-8")
	}
	for _, r := range reason {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return invalid("reason contains the control character %U; only line breaks and tabs may be in it", r)
		}
	}
	return nil
}

// clip cuts what an error quotes.
func clip(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

func invalid(format string, args ...any) error {
	return ci.Errorf(ci.CodeInvalid, format, args...)
}

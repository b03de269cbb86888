package ci_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"docket/store/ci"
)

func TestError_CodeAndSentence(t *testing.T) {
	plain := ci.Errorf(ci.CodeNotFound, "no run %q", "x")
	wrapped := ci.Wrap(ci.CodeUnavailable, io.ErrUnexpectedEOF, "the store is away")
	for what, tc := range map[string]struct {
		err      error
		code     ci.Code
		sentence string
	}{
		"nothing":          {nil, "", ""},
		"one of ours":      {plain, ci.CodeNotFound, `no run "x"`},
		"one with a cause": {wrapped, ci.CodeUnavailable, "the store is away"},
		"one inside":       {fmt.Errorf("reading: %w", wrapped), ci.CodeUnavailable, "the store is away"},
		"one joined":       {errors.Join(io.EOF, plain), ci.CodeNotFound, `no run "x"`},
		"a stranger":       {io.EOF, ci.CodeInternal, "docket met a fault of its own; the server's log has the cause"},
	} {
		if got := ci.CodeOf(tc.err); got != tc.code {
			t.Errorf("%s: code %q", what, got)
		}
		if tc.err != nil && ci.MessageOf(tc.err) != tc.sentence {
			t.Errorf("%s: %q", what, ci.MessageOf(tc.err))
		}
	}
	if !errors.Is(wrapped, io.ErrUnexpectedEOF) || !strings.HasSuffix(wrapped.Error(), ": unexpected EOF") {
		t.Errorf("the log loses the cause: %v", wrapped)
	}
	if strings.Contains(ci.MessageOf(wrapped), "EOF") {
		t.Error("a client would see the cause")
	}
}

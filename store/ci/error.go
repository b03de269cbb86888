package ci

import (
	"errors"
	"fmt"
)

// Code says what kind of failure an Error is. Each has one HTTP status, in
// server/error.go alone, and one exit code on the command line.
type Code string

const (
	CodeMalformed        Code = "malformed"          // cannot be read at all: syntax, missing header
	CodeUnauthenticated  Code = "unauthenticated"    // no valid token or signature
	CodeForbidden        Code = "forbidden"          // known, but not allowed
	CodeNotFound         Code = "not_found"          // no such thing
	CodeMethodNotAllowed Code = "method_not_allowed" // the path exists, the method does not
	CodeConflict         Code = "conflict"           // an identity or a state says no
	CodeTooLarge         Code = "too_large"          // over a documented limit
	CodeUnsupportedMedia Code = "unsupported_media"  // content type or encoding
	CodeInvalid          Code = "invalid"            // readable, but not acceptable
	CodeTooMany          Code = "too_many"           // asked too often; wait
	CodeUnavailable      Code = "unavailable"        // not now: nothing was promised, try again
	CodeInternal         Code = "internal"           // a fault of docket's own
)

// Error is a failure that a person will read. Message is one sentence that
// says what is wrong, where, and how to mend it; it may be shown to anyone who
// may see the request. Err is the cause, for the log alone.
type Error struct {
	Code    Code
	Message string
	Err     error

	// ExistingRun is the run that holds an idempotency key which was used
	// again for something else.
	ExistingRun string
}

// Errorf returns an Error with a formatted message and no cause.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap returns an Error with a cause that only the log sees.
func Wrap(code Code, err error, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: err}
}

// Error returns the message and, after a colon, the cause.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the first Error in err's chain, CodeInternal for
// any other error, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// MessageOf returns the sentence for people in err's chain. For an error that
// has none it returns a neutral one: causes never reach a client.
func MessageOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Message
	}
	return "docket met a fault of its own; the server's log has the cause"
}

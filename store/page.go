package store

import (
	"encoding/base64"
	"encoding/binary"

	"docket/store/ci"
)

// Page bounds a listing. Limit 0 means DefaultLimit. Cursor is the
// next_cursor of the page before; a bad one is CodeInvalid.
type Page struct {
	Limit  int
	Cursor string
}

const (
	DefaultLimit = 50
	MaxLimit     = 200
)

// maxLooked bounds how many records one page may pass over. A filter that
// matches little gives short pages, each with a cursor to go on from.
const maxLooked = 100_000

// read returns the limit and the sequence that the page starts below, 0 for
// the newest.
func (p Page) read() (limit int, before uint64, err error) {
	limit = p.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	if limit < 1 || limit > MaxLimit {
		return 0, 0, ci.Errorf(ci.CodeInvalid, "limit is %d; it must be from 1 to %d", p.Limit, MaxLimit)
	}
	if p.Cursor == "" {
		return limit, 0, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	// Only as docket writes it: the decoder passes over line breaks and spare bits.
	if err != nil || len(b) != 8 || binary.BigEndian.Uint64(b) == 0 || cursor(binary.BigEndian.Uint64(b)) != p.Cursor {
		return 0, 0, ci.Errorf(ci.CodeInvalid, "cursor %q is not one that docket gave; start again without it", p.Cursor)
	}
	return limit, binary.BigEndian.Uint64(b), nil
}

// cursor names the place below a sequence.
func cursor(seq uint64) string {
	return base64.RawURLEncoding.EncodeToString(be64(seq))
}

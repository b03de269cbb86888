package server

import (
	"errors"
	"io"
	"net/http"
	"time"

	"docket/store/ci"
)

const (
	// firstBuffer is what a body gets before a byte of it has come: a sender
	// without a valid signature cannot claim memory by a header alone.
	firstBuffer = 64 << 10
	// keptBuffer is the largest buffer that is kept for the next body: that of a
	// small one, so that a flood of them makes no garbage.
	keptBuffer = smallBody + firstBuffer
)

// takeBody reads a delivery's body, at most limit bytes of it, once there is
// room for it. free gives the buffer back; call it only when nobody holds the
// body any more. leave gives the room back.
//
// Errors: CodeTooLarge, before a byte is read if the length is announced;
// CodeMalformed if the body ends early or is too slow; CodeUnavailable if
// there is no room.
func (s *Server) takeBody(w http.ResponseWriter, r *http.Request, limit int64) (body []byte, free, leave func(), err error) {
	if r.ContentLength > limit {
		w.Header().Set("Connection", "close")
		return nil, nil, nil, tooLarge(limit)
	}
	control := http.NewResponseController(w)
	g, err := s.rooms.enter(r.Context(), Network(s.clientAddress(r)), r.ContentLength, limit, func() { _ = control.SetReadDeadline(time.Now()) })
	if err != nil {
		w.Header().Set("Connection", "close")
		return nil, nil, nil, err
	}
	body, free, err = s.readBody(w, r, limit, g)
	if err != nil {
		g.leave()
		return nil, nil, nil, err
	}
	return body, free, g.leave, nil
}

// readBody reads a body into a buffer and tells the guest how much came.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, limit int64, g *guest) (body []byte, free func(), err error) {
	p, _ := s.bodies.Get().(*[]byte)
	if p == nil {
		b := make([]byte, 0, firstBuffer)
		p = &b
	}
	free = func() {
		if cap(*p) <= keptBuffer {
			s.bodies.Put(p)
		}
	}
	b := (*p)[:0]
	from := http.MaxBytesReader(w, r.Body, limit)
	for {
		if len(b) == cap(b) {
			b = grow(b, r.ContentLength)
		}
		n, err := from.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		g.read.Add(int64(n))
		if err == io.EOF {
			*p = b
			g.read.Store(g.size)
			return b, free, nil
		}
		if err != nil {
			*p = b
			free()
			var over *http.MaxBytesError
			if errors.As(err, &over) {
				return nil, nil, tooLarge(limit)
			}
			return nil, nil, ci.Wrap(ci.CodeMalformed, err, "the body ended after %d bytes, before its announced end or too slowly; nothing was stored, send it again", len(b))
		}
	}
}

// grow doubles a full buffer, or goes straight to the announced length where
// that is nearer, with a byte to spare for the end of the body.
func grow(b []byte, announced int64) []byte {
	size := 2 * int64(cap(b))
	if announced >= int64(len(b)) && announced < size {
		size = announced + 1
	}
	out := make([]byte, len(b), size)
	copy(out, b)
	return out
}

func tooLarge(limit int64) error {
	return ci.Errorf(ci.CodeTooLarge, "the body is larger than %d bytes; raise limits.body if deliveries of this size are meant to come", limit)
}

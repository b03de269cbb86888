package store

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"
)

// bodyBuffers are the two buffers that packing a body needs for a moment: a
// body can be large, and its packed form seldom is.
type bodyBuffers struct{ raw, packed []byte }

// bodyPacker packs bodies, reusing buffers.
type bodyPacker struct{ pool sync.Pool }

// maxPooled is the largest buffer that is kept for the next body, in bytes.
const maxPooled = 1 << 20

// encode packs the kept headers and the exact bytes.
func (p *bodyPacker) encode(header map[string]string, body []byte) []byte {
	b, _ := p.pool.Get().(*bodyBuffers)
	if b == nil {
		b = &bodyBuffers{}
	}
	h := mustJSON(header)
	b.raw = binary.AppendUvarint(b.raw[:0], uint64(len(h)))
	b.raw = append(b.raw, h...)
	b.raw = append(b.raw, body...)
	packed := s2.Encode(b.packed[:cap(b.packed)], b.raw)
	b.packed = packed
	out := append(make([]byte, 0, len(packed)), packed...)
	if cap(b.raw) <= maxPooled {
		p.pool.Put(b)
	}
	return out
}

func decodeBody(v []byte) (header map[string]string, body []byte, err error) {
	raw, err := s2.Decode(nil, v)
	if err != nil {
		return nil, nil, fmt.Errorf("body record: %w", err)
	}
	n, w := binary.Uvarint(raw)
	if w <= 0 || uint64(len(raw)-w) < n {
		return nil, nil, fmt.Errorf("body record is cut short")
	}
	if err := json.Unmarshal(raw[w:w+int(n)], &header); err != nil {
		return nil, nil, fmt.Errorf("body record: %w", err)
	}
	return header, raw[w+int(n):], nil
}

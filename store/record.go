package store

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"docket/store/ci"
)

// A record is a short binary header and a JSON body. The header holds what is
// only known inside the transaction (numbers) and what listings filter by, so
// that the JSON can be made before the transaction begins.

// encodeReceipt: outcome letter, length and ids of the runs, JSON.
// CodeConflict if the ids do not fit.
func encodeReceipt(id string, outcome ci.Outcome, runs []string, body []byte) ([]byte, error) {
	ids := strings.Join(runs, ",")
	if len(ids) > math.MaxUint16 {
		return nil, ci.Errorf(ci.CodeConflict, "receipt %s would have %d runs, more than its record holds; start a new run of its commit instead", id, len(runs))
	}
	b := make([]byte, 0, 3+len(ids)+len(body))
	b = append(b, outcome[0])
	b = binary.BigEndian.AppendUint16(b, uint16(len(ids)))
	b = append(b, ids...)
	return append(b, body...), nil
}

func decodeReceipt(v []byte) (ci.Receipt, error) {
	var r ci.Receipt
	if len(v) < 3 {
		return r, fmt.Errorf("receipt record of %d bytes", len(v))
	}
	n := int(binary.BigEndian.Uint16(v[1:3]))
	if len(v) < 3+n {
		return r, fmt.Errorf("receipt record cut short")
	}
	if err := json.Unmarshal(v[3+n:], &r); err != nil {
		return r, fmt.Errorf("receipt record: %w", err)
	}
	r.Runs = []string{}
	if n > 0 {
		r.Runs = strings.Split(string(v[3:3+n]), ",")
	}
	if r.Verdicts == nil {
		r.Verdicts = []ci.Verdict{}
	}
	return r, nil
}

// encodeRun: order of creation, state letter, JSON. The id is the key's.
func encodeRun(seq uint64, state ci.State, body []byte) []byte {
	b := make([]byte, 0, 9+len(body))
	b = binary.BigEndian.AppendUint64(b, seq)
	b = append(b, stateBytes[state])
	return append(b, body...)
}

func decodeRun(k, v []byte) (ci.Run, error) {
	var r ci.Run
	project, number, ok := splitRunKey(k)
	if !ok || len(v) < 9 {
		return r, fmt.Errorf("run record %q of %d bytes", k, len(v))
	}
	if err := json.Unmarshal(v[9:], &r); err != nil {
		return r, fmt.Errorf("run record %s-%d: %w", project, number, err)
	}
	r.Project, r.Number, r.ID = project, number, ci.RunID(project, number)
	r.State = stateOf(v[8])
	r.Internal.Seq = fromBE64(v)
	return r, nil
}

// runState reads a run record's state without decoding the rest.
func runState(v []byte) ci.State {
	if len(v) < 9 {
		return ""
	}
	return stateOf(v[8])
}

var outboxLetters = map[ci.OutboxState]byte{
	ci.OutboxPending: 'p', ci.OutboxSent: 's', ci.OutboxSkipped: 'k', ci.OutboxDead: 'd',
}

// encodeEntry: state letter, run id, hold key, JSON. The sequence is the key's.
func encodeEntry(state ci.OutboxState, run, hold string, body []byte) []byte {
	b := make([]byte, 0, 5+len(run)+len(hold)+len(body))
	b = append(b, outboxLetters[state])
	b = binary.BigEndian.AppendUint16(b, uint16(len(run)))
	b = append(b, run...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(hold)))
	b = append(b, hold...)
	return append(b, body...)
}

// entryHead is what an entry's header says.
type entryHead struct {
	state ci.OutboxState
	run   string
	hold  string
	body  []byte
}

func decodeEntryHead(v []byte) (h entryHead, err error) {
	short := fmt.Errorf("outbox record of %d bytes is cut short", len(v))
	if len(v) < 5 {
		return h, short
	}
	for s, c := range outboxLetters {
		if c == v[0] {
			h.state = s
		}
	}
	v = v[1:]
	for _, field := range []*string{&h.run, &h.hold} {
		if len(v) < 2 {
			return h, short
		}
		n := int(binary.BigEndian.Uint16(v))
		if len(v) < 2+n {
			return h, short
		}
		*field, v = string(v[2:2+n]), v[2+n:]
	}
	h.body = v
	return h, nil
}

// decodeJSON reads a record that is JSON alone.
func decodeJSON[T any](kind string, v []byte) (T, error) {
	var x T
	if err := json.Unmarshal(v, &x); err != nil {
		return x, fmt.Errorf("%s record: %w", kind, err)
	}
	return x, nil
}

// mustJSON encodes a record. Records hold nothing that cannot be encoded.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

package store

import (
	"bytes"
	"strconv"

	"docket/store/ci"
)

// decide writes a line of the audit trail.
func (t *tx) decide(d ci.Decision) error {
	seq, err := t.next(bucketDecisions)
	if err != nil {
		return err
	}
	d.At, d.ID = ci.At(t.now), decisionID(seq)
	if err := t.put(bucketDecisions, be64(seq), mustJSON(d)); err != nil {
		return err
	}
	for _, run := range []string{d.Run, d.OtherRun} {
		if run == "" {
			continue
		}
		if err := t.put(bucketRunDecisions, runDecisionKey(run, seq), nil); err != nil {
			return err
		}
	}
	return nil
}

func decisionID(seq uint64) string { return "dec-" + strconv.FormatUint(seq, 10) }

func runDecisionKey(run string, seq uint64) []byte {
	return append(append([]byte(run), 0), be64(seq)...)
}

// Decisions lists decisions, newest first; run "" means all, else those that
// concern the run.
func (s *Store) Decisions(run string, p Page) (list []ci.Decision, next string, err error) {
	return s.DecisionsOfKind(run, "", p)
}

// DecisionsOfKind is Decisions with those of other kinds left out; kind ""
// means all. A page of a kind that is rare may be short, with a cursor to go
// on from.
func (s *Store) DecisionsOfKind(run, kind string, p Page) (list []ci.Decision, next string, err error) {
	named := []byte(`"kind":` + strconv.Quote(kind))
	list = []ci.Decision{}
	limit, before, err := p.read()
	if err != nil {
		return nil, "", err
	}
	bucket, prefix := bucketDecisions, []byte(nil)
	if run != "" {
		bucket, prefix = bucketRunDecisions, append([]byte(run), 0)
	}
	err = s.view(func(t *tx) error {
		c := t.bucket(bucket).Cursor()
		var from []byte
		if before > 0 {
			from = append(append([]byte(nil), prefix...), be64(before)...)
		}
		k, _ := lastBefore(c, prefix, from)
		looked := 0
		for ; len(k) == len(prefix)+8 && string(k[:len(prefix)]) == string(prefix); k, _ = c.Prev() {
			if looked++; len(list) == limit || looked > maxLooked {
				next = cursor(before)
				return nil
			}
			before = fromBE64(k[len(prefix):])
			v := t.get(bucketDecisions, be64(before))
			if kind != "" && !bytes.Contains(v, named) {
				continue
			}
			d, err := decodeJSON[ci.Decision]("decision", v)
			if err != nil {
				return err
			}
			if kind != "" && d.Kind != kind {
				continue
			}
			list = append(list, d)
		}
		return nil
	})
	return list, next, err
}

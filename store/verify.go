package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"docket/store/ci"
)

// maxBroken bounds how many faults Verify lists.
const maxBroken = 1000

// Verify checks every page, record, index and invariant and returns a line
// for each thing that is broken. It reads all of the store; an open one is
// copied first, which needs as much free space.
func (s *Store) Verify(ctx context.Context) ([]string, error) {
	v := &verifier{ctx: ctx, used: map[string]uint32{}, queues: map[string][]uint64{}, speakers: map[string]lane{}, slotRuns: map[string]string{}}
	if !s.db.IsReadOnly() {
		return s.verifyCopy(v)
	}
	err := s.view(func(t *tx) error {
		v.t = t
		for err := range t.b.Check() {
			v.broken("page: %v", err)
		}
		for _, check := range []func() error{
			v.strays, v.receipts, v.identities, v.digests, v.runs, v.states, v.refs, v.outbox, v.due, v.dead, v.lanes,
			v.requests, v.decisions, v.scopes, v.tokens, v.pins, v.users, v.pauses,
			v.sequences, v.bodies, v.specs, v.forks, v.holds, v.runDecisions, v.runEntries, v.kinds, v.checks, v.slots,
			v.groups, v.lapses, v.commits,
			v.recoveries, v.gaps, v.heads,
		} {
			if err := check(); err != nil {
				return err
			}
		}
		return nil
	})
	return v.list, err
}

type verifier struct {
	ctx      context.Context
	t        *tx
	list     []string
	used     map[string]uint32   // users of each lane, as the records have it
	queues   map[string][]uint64 // pending entries of each lane
	speakers map[string]lane     // newest live run of each status lane
	slotRuns map[string]string   // the run of each slot of a schedule
}

func (v *verifier) broken(format string, args ...any) {
	if len(v.list) < maxBroken {
		v.list = append(v.list, fmt.Sprintf(format, args...))
	}
}

// each calls fn for every key of a bucket until the context ends.
func (v *verifier) each(bucket int, fn func(k, val []byte) error) error {
	n := 0
	return v.t.bucket(bucket).ForEach(func(k, val []byte) error {
		if n++; n%1024 == 0 && v.ctx.Err() != nil {
			return v.ctx.Err()
		}
		return fn(k, val)
	})
}

func (v *verifier) receipts() error {
	ids := v.t.bucket(bucketIdentities)
	return v.each(bucketReceipts, func(k, val []byte) error {
		r, err := decodeReceipt(val)
		if err != nil {
			v.broken("receipt %d: %v", fromBE64(k), err)
			return nil
		}
		if got := ids.Get(identityKey(r.ReceiptID())); !bytes.Equal(got, k) {
			v.broken("receipt %s: its identity points elsewhere", r.ID)
		}
		if r.ID != r.ReceiptID().String() {
			v.broken("receipt %s: its parts say %s", r.ID, r.ReceiptID())
		}
		if (len(r.Runs) > 0) != (r.Outcome == ci.Accepted) {
			v.broken("receipt %s: %s with %d runs", r.ID, r.Outcome, len(r.Runs))
		}
		for _, id := range r.Runs {
			run, err := v.t.run(id)
			if err == nil && run.Cause.Receipt != r.ID {
				v.broken("receipt %s: run %s belongs to %q", r.ID, id, run.Cause.Receipt)
			}
			if err != nil && !v.pruned(id) {
				v.broken("receipt %s: run %s: %v", r.ID, id, err)
			}
		}
		return v.body(k, r)
	})
}

// pruned reports whether retention may have taken a run: newer ones of its
// project are there.
func (v *verifier) pruned(id string) bool {
	project, number, err := ci.ParseRunID(id)
	if err != nil {
		return false
	}
	k, _ := last(v.t.bucket(bucketRuns).Cursor(), projectPrefix(project))
	_, newest, _ := splitRunKey(k)
	return newest > number
}

func (v *verifier) body(k []byte, r ci.Receipt) error {
	val := v.t.get(bucketBodies, k)
	if val == nil {
		return nil // retention took it
	}
	_, body, err := decodeBody(val)
	if err != nil {
		v.broken("receipt %s: %v", r.ID, err)
	} else if int64(len(body)) != r.BodyBytes {
		v.broken("receipt %s: %d bytes of body, and the record says %d", r.ID, len(body), r.BodyBytes)
	} else if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != r.BodySHA256 {
		v.broken("receipt %s: its body has another digest", r.ID)
	}
	return nil
}

func (v *verifier) identities() error {
	return v.each(bucketIdentities, func(k, val []byte) error {
		rec := v.t.get(bucketReceipts, val)
		if rec == nil {
			v.broken("identity %q points to receipt %d, which is missing", k, fromBE64(val))
			return nil
		}
		r, err := decodeReceipt(rec)
		if err == nil && !bytes.Equal(identityKey(r.ReceiptID()), k) {
			v.broken("identity %q points to receipt %s", k, r.ID)
		}
		return nil
	})
}

func (v *verifier) digests() error {
	return v.each(bucketDigests, func(k, val []byte) error {
		rec := v.t.get(bucketReceipts, val)
		if rec == nil {
			v.broken("digest %x points to receipt %d, which is missing", k, fromBE64(val))
			return nil
		}
		r, err := decodeReceipt(rec)
		if err == nil && !bytes.Equal(digestKey(r.PushedAt, r.BodySHA256), k) {
			v.broken("digest %x points to receipt %s, whose digest it is not", k, r.ID)
		}
		return nil
	})
}

func (v *verifier) runs() error {
	var seqs []uint64
	var project string
	var before uint64
	err := v.each(bucketRuns, func(k, val []byte) error {
		r, err := decodeRun(k, val)
		if err != nil {
			v.broken("run %q: %v", k, err)
			return nil
		}
		if r.Project != project {
			project, before = r.Project, 0
		}
		if r.Internal.Seq <= before {
			v.broken("run %s: created before the one with the number below", r.ID)
		}
		before = r.Internal.Seq
		seqs = append(seqs, r.Internal.Seq)
		if !r.State.Valid() {
			v.broken("run %s: no such state", r.ID)
			return nil
		}
		if got := v.t.get(bucketStates, stateKey(r.State, r.Project, r.Number)); fromBE64(got) != r.Internal.Seq {
			v.broken("run %s: %s, and the index of states does not have it", r.ID, r.State)
		}
		return v.run(&r)
	})
	slices.Sort(seqs)
	if len(slices.Compact(slices.Clone(seqs))) != len(seqs) {
		v.broken("runs: two have the same order of creation")
	}
	return err
}

func (v *verifier) run(r *ci.Run) error {
	spec, err := v.t.spec(r.Spec)
	if err != nil {
		v.broken("run %s: %v", r.ID, err)
		return nil
	}
	if got := spec.Digest(); got != r.Spec {
		v.broken("run %s: its spec's digest is %s", r.ID, got)
	}
	if r.State.Final() == r.FinishedAt.IsZero() {
		v.broken("run %s: %s, finished at %v", r.ID, r.State, r.FinishedAt)
	}
	if (r.State == ci.Queued || r.State == ci.Running || r.State == ci.Held) && r.Source.Commit == "" {
		v.broken("run %s: %s without a commit", r.ID, r.State)
	}
	if r.State == ci.Preparing && r.Internal.Job == nil {
		v.broken("run %s: preparing, and nothing is to be prepared", r.ID)
	}
	for _, key := range refKeys(r) {
		if v.t.get(bucketRefs, key) == nil {
			v.broken("run %s: not filed under its ref as %q", r.ID, key)
		}
	}
	if r.Internal.Group != "" {
		v.inGroup(r)
	}
	if r.State == ci.Held && !r.Internal.LapsesAt.IsZero() && v.t.get(bucketLapses, lapseKey(r)) == nil {
		v.broken("run %s: held, and not on the list of those that lapse", r.ID)
	}
	switch r.Cause.Kind {
	case ci.CauseDelivery:
		v.cause(r)
	case ci.CauseSchedule:
		v.slotOf(r)
	}
	if name, ok := runLane(r, spec); ok && !r.State.Final() {
		v.used[name]++
		if l := v.speakers[name]; r.Internal.Seq > l.speaker {
			v.speakers[name] = lane{speaker: r.Internal.Seq, run: r.ID}
		}
	}
	return nil
}

func (v *verifier) cause(r *ci.Run) {
	id, err := ci.ParseReceiptID(r.Cause.Receipt)
	if err != nil {
		v.broken("run %s: %v", r.ID, err)
		return
	}
	key := v.t.get(bucketIdentities, identityKey(id))
	if key == nil {
		return // retention took the receipt
	}
	rec, err := decodeReceipt(v.t.get(bucketReceipts, key))
	if err == nil && !slices.Contains(rec.Runs, r.ID) {
		v.broken("run %s: receipt %s does not name it", r.ID, rec.ID)
	}
}

func (v *verifier) states() error {
	return v.each(bucketStates, func(k, val []byte) error {
		rv := v.t.get(bucketRuns, k[1:])
		if rv == nil || runState(rv) != stateOf(k[0]) {
			v.broken("index of states: %q has no such run", k)
		}
		return nil
	})
}

func (v *verifier) refs() error {
	return v.each(bucketRefs, func(k, val []byte) error {
		m, err := decodeMove(val)
		i := bytes.IndexByte(k, 0)
		if err != nil || i < 0 || len(k) < i+11 {
			v.broken("refs: %q: %v", k, err)
			return nil
		}
		if k[i+1] == refIgnored {
			if m.seq != fromBE64(k[len(k)-8:]) {
				v.broken("refs: the ignored push %q is filed with another place", k)
			}
			return nil
		}
		key := runKey(string(k[:i]), fromBE64(k[len(k)-8:]))
		rv := v.t.get(bucketRuns, key)
		if rv == nil || fromBE64(rv) != m.seq {
			v.broken("refs: %q has no such run", k)
			return nil
		}
		r, err := decodeRun(key, rv)
		if err == nil && (m.after != r.Source.Commit || m.before != r.Source.Before || m.scope != scopeHash(r.Internal.Scope) || m.head != r.Internal.Head) {
			v.broken("refs: run %s is filed with another move than its own", r.ID)
		}
		if err == nil && !filed(&r, k) {
			v.broken("refs: run %s is filed under %q, where it does not belong", r.ID, k)
		}
		return nil
	})
}

func (v *verifier) outbox() error {
	return v.each(bucketOutbox, func(k, val []byte) error {
		seq := fromBE64(k)
		e, err := decodeEntry(seq, val)
		if err != nil {
			v.broken("%v", err)
			return nil
		}
		if h, err := decodeEntryHead(val); err == nil && h.hold != holdOf(&e) {
			v.broken("notification %s: a hold of %q would stop it", e.ID, h.hold)
		}
		if !json.Valid(e.Payload) {
			v.broken("notification %s: its payload cannot be read", e.ID)
		}
		switch e.State {
		case ci.OutboxPending:
			v.used[e.Lane]++
			v.queues[e.Lane] = append(v.queues[e.Lane], seq)
		case ci.OutboxDead:
			v.used[e.Lane]++
			if v.t.bucket(bucketDead).Get(k) == nil {
				v.broken("notification %s: dead, and not on the list of the dead", e.ID)
			}
		case ci.OutboxSent, ci.OutboxSkipped:
		default:
			v.broken("notification %s: no such state", e.ID)
		}
		if (e.State == ci.OutboxPending) != e.FinishedAt.IsZero() {
			v.broken("notification %s: %s, finished at %v", e.ID, e.State, e.FinishedAt)
		}
		return nil
	})
}

func (v *verifier) due() error {
	want := map[string]bool{}
	for name, queue := range v.queues {
		l, err := v.t.lane(name)
		if err != nil {
			v.broken("lane %s: %v", name, err)
			continue
		}
		for _, seq := range queue {
			e, err := v.t.entryAt(seq)
			if err != nil {
				return err
			}
			want[string(dueKey(l.queue, seq, e.NextAttemptAt))] = true
		}
	}
	found := 0
	err := v.each(bucketDue, func(k, _ []byte) error {
		if !want[string(k)] {
			v.broken("due: %x is not where a pending notification waits", k)
		}
		found++
		return nil
	})
	if found != len(want) {
		v.broken("due: %d keys for %d pending notifications", found, len(want))
	}
	return err
}

func (v *verifier) dead() error {
	return v.each(bucketDead, func(k, _ []byte) error {
		if val := v.t.get(bucketOutbox, k); len(val) == 0 || val[0] != outboxLetters[ci.OutboxDead] {
			v.broken("list of the dead: notification %d is not dead", fromBE64(k))
		}
		return nil
	})
}

func (v *verifier) lanes() error {
	seen := 0
	err := v.each(bucketLanes, func(k, _ []byte) error {
		name := string(k)
		l, err := v.t.lane(name)
		if err != nil {
			v.broken("lane %s: %v", name, err)
			return nil
		}
		seen++
		if l.users != v.used[name] || l.users == 0 {
			v.broken("lane %s: %d users, and the record says %d", name, v.used[name], l.users)
		}
		if !slices.Equal(l.queue, v.queues[name]) {
			v.broken("lane %s: its queue is %v, and %v are pending", name, l.queue, v.queues[name])
		}
		if want := v.speakers[name]; l.speaker < want.speaker {
			v.broken("lane %s: run %s speaks, and %s is newer", name, l.run, want.run)
		} else if l.speaker == 0 && l.run != "" {
			if r, err := v.t.run(l.run); err != nil || !r.Internal.Skip {
				v.broken("lane %s: %s speaks as one that is skipped, and is not: %v", name, l.run, err)
			}
		} else if l.speaker == want.speaker && l.run != want.run {
			v.broken("lane %s: run %s speaks in the place of %s", name, l.run, want.run)
		}
		return nil
	})
	if seen != len(v.used) {
		v.broken("lanes: %d records for %d lanes in use", seen, len(v.used))
	}
	return err
}

func (v *verifier) requests() error {
	return v.each(bucketRequests, func(k, val []byte) error {
		rec, err := decodeJSON[answerRecord]("request", val)
		if err != nil {
			v.broken("request %q: %v", k, err)
			return nil
		}
		if rec.Run != "" && !v.pruned(rec.Run) {
			if _, err := v.t.run(rec.Run); err != nil {
				v.broken("request %q: %v", k, err)
			}
		}
		return nil
	})
}

func (v *verifier) decisions() error {
	return v.each(bucketDecisions, func(k, val []byte) error {
		d, err := decodeJSON[ci.Decision]("decision", val)
		if err != nil {
			v.broken("decision %d: %v", fromBE64(k), err)
			return nil
		}
		for _, run := range []string{d.Run, d.OtherRun} {
			if run != "" && v.t.get(bucketRunDecisions, runDecisionKey(run, fromBE64(k))) == nil {
				v.broken("decision %s: not filed under run %s", d.ID, run)
			}
		}
		return nil
	})
}

func (v *verifier) scopes() error {
	return v.each(bucketScopes, func(k, val []byte) error {
		if sc, err := v.t.scope(k, val); err != nil || sc.Project == "" {
			v.broken("scope %q: %v", k, err)
		}
		return nil
	})
}

func (v *verifier) tokens() error {
	names := map[string]bool{}
	return v.each(bucketTokens, func(_, val []byte) error {
		tok, err := decodeJSON[ci.Token]("token", val)
		if err != nil || !tok.Role.Valid() || names[tok.Name] {
			v.broken("token %q: %v", tok.Name, err)
		}
		names[tok.Name] = true
		return nil
	})
}

func (v *verifier) pins() error {
	return v.each(bucketPins, func(k, val []byte) error {
		if _, err := decodeJSON[ci.Repository]("pin", val); err != nil {
			v.broken("pin of %s: %v", k, err)
		}
		return nil
	})
}

func (v *verifier) pauses() error {
	if _, err := v.t.pauses(); err != nil {
		v.broken("pauses: %v", err)
	}
	return nil
}

// VerifyFile checks the store in a file that nothing else has open.
func VerifyFile(ctx context.Context, path string) ([]string, error) {
	s, err := Open(path, Options{ReadOnly: true, walk: true})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Verify(ctx)
}

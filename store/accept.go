package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"

	"docket/store/ci"
)

// maxVerdicts bounds how many judgements a receipt keeps: the first and the
// newest ones.
const maxVerdicts = 50

// Acceptance is a verified and judged delivery.
type Acceptance struct {
	Delivery ci.Delivery
	Event    ci.Event
	Reason   string      // why it starts nothing, where no run comes of Drafts and Reruns
	Drafts   []ci.Draft  // the runs it starts
	Reruns   []ci.Rerun  // the runs it repeats
	Projects []string    // the configured projects of its repository: pinned to its id if they are not yet
	Cancels  []ci.Cancel // pending runs that it ends
	// RefuseReplay refuses known bytes under a new delivery id.
	RefuseReplay bool
}

// Accepted is the answer to an Acceptance, true from before it was given.
type Accepted struct {
	Receipt   ci.Receipt
	Runs      []ci.Run
	Duplicate bool // the delivery was on record; nothing new came of it
}

// Accept writes receipt, body, runs and outbox entries in one commit.
//
// A delivery on record is answered with what exists. If it had been ignored,
// it takes the new judgement.
//
// Errors: CodeConflict (the identity is on record with other bytes),
// CodeForbidden (a project is pinned to another repository id, or a refused
// replay), CodeUnavailable (not committed; nothing was promised).
func (s *Store) Accept(ctx context.Context, a Acceptance) (Accepted, error) {
	p := s.prepareAcceptance(&a)
	var out Accepted
	err := s.update(ctx, func(t *tx) (err error) {
		out, err = t.accept(&a, p)
		return err
	})
	if err != nil {
		return Accepted{}, err
	}
	return out, nil
}

// acceptance is what can be made of an Acceptance outside the transaction.
type acceptance struct {
	receipt  ci.Receipt
	json     []byte
	pin      []byte // the record of a project that is pinned to the repository
	body     []byte
	identity []byte
	digest   []byte
	runs     []*newRun
}

func (s *Store) prepareAcceptance(a *Acceptance) *acceptance {
	d, e := &a.Delivery, &a.Event
	if d.BodySHA256 == "" {
		sum := sha256.Sum256(d.Body)
		d.BodySHA256 = hex.EncodeToString(sum[:])
	}
	id := d.ReceiptID()
	now := ci.At(d.ReceivedAt)
	if now.IsZero() {
		now = ci.At(s.now())
	}
	p := &acceptance{identity: identityKey(id), digest: digestKey(e.PushedAt, d.BodySHA256)}
	outcome, reason := ci.Ignored, a.Reason
	if len(a.Drafts) > 0 {
		outcome, reason = ci.Accepted, ""
	}
	p.receipt = ci.Receipt{
		ID: id.String(), Integration: id.Integration, Installation: id.Installation, Delivery: id.Delivery,
		Event: d.Event, Action: e.Action, Outcome: outcome, Reason: reason, Repository: e.Repository,
		Ref: e.Ref, Commit: e.Commit, BodySHA256: d.BodySHA256, BodyBytes: int64(len(d.Body)),
		Secret: d.Secret, ReceivedAt: now, PushedAt: e.PushedAt,
		Verdicts: []ci.Verdict{{At: now, Outcome: outcome, Reason: reason}},
	}
	p.json = receiptJSON(&p.receipt)
	p.pin = mustJSON(e.Repository)
	p.body = s.bodies.encode(d.Header, d.Body)
	p.runs = s.prepareRuns(a.Drafts, now)
	return p
}

func (s *Store) prepareRuns(drafts []ci.Draft, now ci.Time) []*newRun {
	runs := make([]*newRun, len(drafts))
	for i := range drafts {
		d := &drafts[i]
		runs[i] = s.prepareRun(d, &d.Spec, d.Spec.Digest(), now)
	}
	return runs
}

func (t *tx) accept(a *Acceptance, p *acceptance) (out Accepted, err error) {
	if v := t.get(bucketIdentities, p.identity); v != nil {
		return t.acceptAgain(fromBE64(v), a, p)
	}
	if err := t.checkPins(a, p.pin); err != nil {
		return out, err
	}
	twin, twinRun, sameBytes, err := t.twin(a, p)
	if err != nil {
		return out, err
	}
	if sameBytes && a.RefuseReplay {
		return out, ci.Errorf(ci.CodeForbidden, "these bytes are on record as receipt %s, and the project refuses replays (replays: refuse); redeliver under the same delivery id, or replay that receipt", twin)
	}
	if err := t.pin(a, p.pin); err != nil {
		return out, err
	}
	seq, err := t.next(bucketReceipts)
	if err != nil {
		return out, err
	}
	out.Receipt = p.receipt
	body := p.json
	var v ci.Verdict
	if out.Runs, out.Receipt.Runs, v, err = t.start(a, p); err != nil {
		return out, err
	}
	if twin != "" || twinRun != "" || v != p.receipt.Verdicts[0] {
		out.Receipt.TwinRun = twinRun
		out.Receipt.Twin, out.Receipt.Outcome, out.Receipt.Reason = twin, v.Outcome, v.Reason
		out.Receipt.Verdicts = []ci.Verdict{v}
		body = receiptJSON(&out.Receipt)
	}
	key := be64(seq)
	record, err := encodeReceipt(p.receipt.ID, out.Receipt.Outcome, out.Receipt.Runs, body)
	if err != nil {
		return out, err
	}
	if err := t.put(bucketReceipts, key, record); err != nil {
		return out, err
	}
	if err := t.put(bucketBodies, key, p.body); err != nil {
		return out, err
	}
	if err := t.put(bucketIdentities, p.identity, key); err != nil {
		return out, err
	}
	if err := t.put(bucketDigests, p.digest, key); err != nil {
		return out, err
	}
	if err := t.noteIgnored(a, out.Runs); err != nil {
		return out, err
	}
	if err := t.noteHeads(a); err != nil {
		return out, err
	}
	return out, t.cancelWaiting(a.Cancels, p.receipt.ID, a.Event.Before)
}

// acceptAgain answers a delivery that is on record.
func (t *tx) acceptAgain(seq uint64, a *Acceptance, p *acceptance) (out Accepted, err error) {
	key := be64(seq)
	if out.Receipt, err = decodeReceipt(t.get(bucketReceipts, key)); err != nil {
		return out, err
	}
	rec := &out.Receipt
	if rec.BodySHA256 != a.Delivery.BodySHA256 {
		return out, ci.Errorf(ci.CodeConflict, "receipt %s is on record with other bytes: a delivery id stands for one body", rec.ID)
	}
	if out.Runs, err = t.runsOf(rec); err != nil {
		return out, err
	}
	if !skips(out.Runs) {
		out.Duplicate = true
		return out, nil
	}
	if err := t.checkPins(a, p.pin); err != nil {
		return out, err
	}
	if err := t.pin(a, p.pin); err != nil {
		return out, err
	}
	made, ids, v, err := t.start(a, p)
	if err != nil {
		return out, err
	}
	if out.Duplicate = len(made) == 0; !out.Duplicate || len(rec.Runs) == 0 {
		rec.Outcome, rec.Reason = v.Outcome, v.Reason
	}
	addVerdict(rec, v)
	out.Runs, rec.Runs = append(out.Runs, made...), append(rec.Runs, ids...)
	// What a deletion ends was ended when it first came. What waits now may
	// belong to a ref that was made anew since.
	return out, t.putReceipt(key, rec)
}

// start makes the runs of a delivery and says what became of it.
func (t *tx) start(a *Acceptance, p *acceptance) (runs []ci.Run, ids []string, v ci.Verdict, err error) {
	v = p.receipt.Verdicts[0]
	if runs, ids, err = t.createRuns(p.runs); err != nil {
		return nil, nil, v, err
	}
	again, why, err := t.repeat(a.Reruns)
	if err != nil {
		return nil, nil, v, err
	}
	for _, r := range again {
		runs, ids = append(runs, r), append(ids, r.ID)
	}
	v.Outcome, v.Reason = ci.Accepted, ""
	if len(ids) == 0 {
		v.Outcome, v.Reason = ci.Ignored, cmp.Or(why, a.Reason)
		for i := range a.Drafts {
			v.Reason = cmp.Or(v.Reason, a.Drafts[i].Reason)
		}
	}
	return runs, ids, v, nil
}

// runsOf reads the runs of a receipt. Of one that retention took the name
// stands.
func (t *tx) runsOf(rec *ci.Receipt) (runs []ci.Run, err error) {
	for _, id := range rec.Runs {
		r, err := t.run(id)
		if ci.CodeOf(err) == ci.CodeNotFound {
			r.ID = id
			r.Project, r.Number, _ = ci.ParseRunID(id)
		} else if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}

func addVerdict(rec *ci.Receipt, v ci.Verdict) {
	rec.Verdicts = append(rec.Verdicts, v)
	if n := len(rec.Verdicts); n > maxVerdicts {
		rec.Verdicts = append(rec.Verdicts[:1], rec.Verdicts[n-maxVerdicts+1:]...)
	}
}

// createRuns makes runs, but for skips that would have nothing to say.
func (t *tx) createRuns(list []*newRun) (runs []ci.Run, ids []string, err error) {
	ids = []string{}
	for _, n := range list {
		if n.run.Internal.Skip {
			if say, err := t.maySay(&n.run, n.spec); err != nil {
				return nil, nil, err
			} else if !say {
				continue
			}
		}
		r, err := t.createRun(n)
		if err != nil {
			return nil, nil, err
		}
		runs, ids = append(runs, r), append(ids, r.ID)
	}
	return runs, ids, nil
}

// twin finds another receipt of the same bytes, or else of the same recent
// move of the same ref, or else the run that was started for the same head.
func (t *tx) twin(a *Acceptance, p *acceptance) (id, run string, sameBytes bool, err error) {
	if v := t.get(bucketDigests, p.digest); v != nil {
		rv := t.get(bucketReceipts, v)
		if rv != nil {
			rec, err := decodeReceipt(rv)
			if err != nil {
				return "", "", false, err
			}
			if rec.BodySHA256 == a.Delivery.BodySHA256 {
				return rec.ID, "", true, nil
			}
		}
	}
	for i := range p.runs {
		r := &p.runs[i].run
		kind, name, ok := refOf(r)
		if job := r.Internal.Job; !ok || r.Source.Commit == "" && (job == nil || job.Object == "") {
			continue // nothing moved: what the ref points to is looked up
		}
		id, run, err = t.recentMove(r, kind, name)
		if err != nil || id != "" || run != "" {
			return id, run, false, err
		}
	}
	return "", "", false, nil
}

// recentMove returns the receipt of a recent run with the same before and
// after; else the run that was started for a head at the same commit.
func (t *tx) recentMove(r *ci.Run, kind byte, name string) (receipt, run string, err error) {
	prefix := refPrefix(r.Project, kind, name)
	commits := encodeCommits(nil, r.Source.Before, r.Source.Commit)
	after := encodeCommits(nil, "", r.Source.Commit)[1:]
	c := t.bucket(bucketRefs).Cursor()
	k, v := last(c, prefix)
	for n := 0; n < lookBack/4 && len(k) == len(prefix)+8 && bytes.HasPrefix(k, prefix); n++ {
		exact := len(v) > moveHeader && bytes.Equal(v[moveHeader:], commits)
		if exact || r.Source.Commit != "" && bytes.HasSuffix(v, after) {
			key := runKey(r.Project, fromBE64(k[len(prefix):]))
			other, err := decodeRun(key, t.get(bucketRuns, key))
			if err != nil {
				return "", "", err
			}
			switch {
			case exact && other.Cause.Event == r.Cause.Event && other.Cause.Kind == ci.CauseDelivery:
				return other.Cause.Receipt, "", nil
			case other.Cause.Kind == ci.CauseRecovery && run == "":
				run = other.ID
			}
		}
		k, v = c.Prev()
	}
	return "", run, nil
}

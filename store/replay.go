package store

import (
	"context"
	"strings"

	"docket/store/ci"
)

// Replay judges a stored delivery again on a person's word.
type Replay struct {
	ID     ci.ReceiptID
	Key    string // idempotency key, may be ""
	By     ci.By
	Reason string     // why it starts nothing, where no run comes of Drafts and Reruns
	Said   string     // what somebody says about why, for the record
	Drafts []ci.Draft // with Cause.Kind CauseReplay
	Reruns []ci.Rerun
}

// Replay writes the new judgement and its runs; the same key answers the same.
// What it starts supersedes nothing: an old push does not become new again.
func (s *Store) Replay(ctx context.Context, r Replay) (rec ci.Receipt, replayed bool, err error) {
	drafts := append([]ci.Draft(nil), r.Drafts...)
	for i := range drafts {
		drafts[i].Scope = ""
	}
	if r.Reason == "" && len(drafts) > 0 {
		r.Reason = drafts[0].Reason // of a skip, in case it is not made
	}
	now := ci.At(s.now())
	runs := s.prepareRuns(drafts, now)
	req := answered{scope: "/receipts", key: r.Key, digest: digestOf("replay", r.ID.String(), "")}
	err = s.update(ctx, func(t *tx) error {
		key, err := t.receiptSeq(r.ID)
		if err != nil {
			return err
		}
		if replayed, err = t.answer(req, &rec); replayed || err != nil {
			return err
		}
		if rec, err = decodeReceipt(t.get(bucketReceipts, key)); err != nil {
			return err
		}
		_, ids, err := t.createRuns(runs)
		if err != nil {
			return err
		}
		again, why, err := t.repeat(r.Reruns)
		if err != nil {
			return err
		}
		for _, run := range again {
			ids = append(ids, run.ID)
		}
		v := ci.Verdict{At: now, Outcome: ci.Ignored, Reason: r.Reason}
		if why != "" {
			v.Reason = why
		}
		if len(ids) > 0 {
			v.Outcome, v.Reason = ci.Accepted, "replayed by "+r.By.Name
			rec.Outcome, rec.Reason = ci.Accepted, ""
		} else if len(rec.Runs) == 0 {
			rec.Reason = v.Reason
		}
		rec.Runs = append(rec.Runs, ids...)
		addVerdict(&rec, v)
		if err := t.putReceipt(key, &rec); err != nil {
			return err
		}
		if err := t.decide(ci.Decision{
			Kind: ci.DecisionReplayed, Receipt: rec.ID, Run: strings.Join(ids[:min(1, len(ids))], ""),
			By: r.By, Reason: "judged again: " + string(v.Outcome) + orReason(v.Reason) + orSaid(r.Said),
		}); err != nil {
			return err
		}
		return t.remember(req, "", rec)
	})
	return rec, replayed, err
}

func orReason(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

func orSaid(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}

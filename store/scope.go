package store

import (
	"bytes"
	"context"
	"slices"

	"docket/store/ci"
)

// A scope is what runs can supersede each other in (see ci.Internal). When a
// run joins a scope where another one is still alive, the scope is put on the
// scheduler's list; the decision is the scheduler's, in a write of its own.

// scopeKey: project, hash of the scope, kind and name of the ref.
func scopeKey(r *ci.Run) ([]byte, bool) {
	kind, name, ok := refOf(r)
	if !ok || r.Internal.Scope == "" {
		return nil, false
	}
	k := append(projectPrefix(r.Project), be64(scopeHash(r.Internal.Scope))...)
	k = append(k, kind)
	return append(k, name...), true
}

// markScope puts a new run's scope on the list if there is anything to
// decide. It is called before the run itself is filed.
func (t *tx) markScope(r *ci.Run, policy ci.SupersedePolicy) error {
	if policy == ci.SupersedeNone {
		return nil
	}
	key, ok := scopeKey(r)
	if !ok {
		return nil
	}
	kind, name, _ := refOf(r)
	hash := scopeHash(r.Internal.Scope)
	prefix := refPrefix(r.Project, kind, name)
	k, v := last(t.bucket(bucketRefs).Cursor(), prefix)
	if len(k) == len(prefix)+8 {
		m, err := decodeMove(v)
		if err != nil {
			return err
		}
		follows := m.scope == hash && m.after == r.Source.Before
		state := runState(t.get(bucketRuns, runKey(r.Project, fromBE64(k[len(prefix):]))))
		if m.scope == hash && follows && state.Final() && state != ci.Superseded {
			return nil // the one before has ended, and everything older was decided when it came
		}
		return t.put(bucketScopes, key, be64(r.Internal.Seq))
	}
	return nil
}

// listScope puts a run's scope on the list whatever else is in it.
func (t *tx) listScope(r *ci.Run) error {
	key, ok := scopeKey(r)
	if !ok {
		return nil
	}
	return t.put(bucketScopes, key, be64(r.Internal.Seq))
}

// Scope is a scope that the scheduler has to decide on.
type Scope struct {
	Project string
	Moves   []ScopeMove // in order of arrival

	key []byte
	seq uint64 // of the run that put it on the list
}

// ScopeMove is one run of a scope and how it moved the ref. Without a run it is
// a move that a filter stopped, which only shows how the others follow.
type ScopeMove struct {
	Run  ci.Run
	Push ci.Push
}

// Scopes returns up to limit scopes on the list, with their runs.
func (s *Store) Scopes(limit int) (list []Scope, err error) {
	err = s.view(func(t *tx) error {
		c := t.bucket(bucketScopes).Cursor()
		for k, v := c.First(); k != nil && len(list) < limit; k, v = c.Next() {
			sc, err := t.scope(k, v)
			if err != nil {
				return err
			}
			list = append(list, sc)
		}
		return nil
	})
	return list, err
}

func (t *tx) scope(k, v []byte) (Scope, error) {
	sc := Scope{key: bytes.Clone(k), seq: fromBE64(v)}
	i := bytes.IndexByte(k, 0)
	if i < 0 || len(k) < i+10 {
		return sc, nil
	}
	sc.Project = string(k[:i])
	hash, kind, name := fromBE64(k[i+1:]), k[i+9], string(k[i+10:])
	inScope := func(m move) bool { return m.scope == hash }
	moves, err := t.moves(sc.Project, kind, name, inScope)
	if err != nil {
		return sc, err
	}
	alive, err := t.alive(sc.Project, kind, name, inScope)
	if err != nil {
		return sc, err
	}
	moves = withOlder(alive, moves)
	if kind == refBranch {
		if moves, err = t.withBridges(sc.Project, name, moves); err != nil {
			return sc, err
		}
	}
	for i, p := range pushesOf(sc.Project, moves) {
		if moves[i].bridge {
			sc.Moves = append(sc.Moves, ScopeMove{Push: ci.Push{Before: p.Before, After: p.After}})
			continue
		}
		key := runKey(sc.Project, moves[i].number)
		rv := t.get(bucketRuns, key)
		if rv == nil {
			continue // retention took it
		}
		r, err := decodeRun(key, rv)
		if err != nil {
			return sc, err
		}
		sc.Moves = append(sc.Moves, ScopeMove{r, p})
	}
	return sc, nil
}

// withOlder puts those runs before the newest moves that wait though so many
// came after them: all that wait is decided on.
func withOlder(alive, moves []placed) []placed {
	if len(moves) == 0 {
		return alive
	}
	n := slices.IndexFunc(alive, func(p placed) bool { return p.number >= moves[0].number })
	if n < 0 {
		n = len(alive)
	}
	return append(slices.Clip(alive[:n]), moves...)
}

// Supersession is a decision that a run gives way.
type Supersession struct {
	Run    string
	By     string // the newer run
	Reason string
}

// Supersede carries out the decisions on a scope and takes it off the list,
// unless another run has joined it since it was read. What a run has become
// meanwhile is looked at again: one that has ended, or has entered a deploy
// step, is left alone. A running one is asked to stop. Runs to be made anew gave
// way to others before, and are made in the same write (see renew.go).
func (s *Store) Supersede(ctx context.Context, sc Scope, list []Supersession, renew ...string) error {
	return s.update(ctx, func(t *tx) error {
		if v := t.get(bucketScopes, sc.key); v != nil && fromBE64(v) == sc.seq {
			if err := t.delete(bucketScopes, sc.key); err != nil {
				return err
			}
		}
		for _, d := range list {
			if err := t.supersede(d); err != nil {
				return err
			}
		}
		for _, id := range renew {
			if err := t.renew(id); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *tx) supersede(d Supersession) error {
	r, err := t.run(d.Run)
	if err != nil {
		return err
	}
	reason := "superseded by run " + d.By
	switch {
	case r.State.Pending():
		r.SupersededBy = d.By
		if err := t.moveRun(&r, ci.Superseded, reason); err != nil {
			return err
		}
	case r.State == ci.Running && !r.Internal.Deploying && r.CancelRequested == nil:
		r.CancelRequested = &ci.CancelRequest{
			At: ci.At(t.now), By: ci.By{Kind: ci.ByScheduler, Name: "supersede"},
			Reason: reason, Into: ci.Superseded, ByRun: d.By,
		}
		if err := t.putRun(&r); err != nil {
			return err
		}
		t.wake(TopicRuns)
	default:
		return nil
	}
	return t.decide(ci.Decision{
		Kind: ci.DecisionSuperseded, Run: d.Run, OtherRun: d.By, Project: r.Project,
		By: ci.By{Kind: ci.ByScheduler, Name: "supersede"}, Reason: d.Reason,
	})
}

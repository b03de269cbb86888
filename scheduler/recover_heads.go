package scheduler

import (
	"context"
	"fmt"
	"slices"
	"time"

	"docket/scheduler/pipeline"
	"docket/scheduler/recovery"
	"docket/store"
	"docket/store/ci"
)

const (
	// startedHeads is how many runs one round starts for the heads of a
	// project that says `recover: run`.
	startedHeads = 20
	// messages is how many commits' messages one round reads of a project.
	messages = 20
)

// compareHeads compares the heads of the integration's projects with the known
// runs. Its error ends the round; what concerns one project alone is noted.
func (c *comparison) compareHeads(ctx context.Context) error {
	if !c.headsDue() {
		return nil
	}
	whole, compared := true, 0
	c.rec.Projects = []ci.ProjectHeads{}
	for i := range c.cfg.Projects {
		p := &c.cfg.Projects[i]
		if p.Integration != c.in.Name {
			continue
		}
		err := c.compareProject(ctx, p)
		if err != nil && !lasting(err) {
			return err
		}
		compared++
		state := ci.ProjectHeads{Project: p.Name}
		if err != nil {
			whole, state.Problem = false, ci.MessageOf(err)
			if c.rec.Problem == "" {
				c.rec.Problem = "heads of " + p.Name + ": " + state.Problem
			}
		}
		c.rec.Projects = append(c.rec.Projects, state)
	}
	if whole && compared > 0 {
		c.rec.HeadsAt = ci.At(c.Now())
	}
	c.headsNext[c.in.Name] = c.Now().Add(headsWait(c.rec.Last.Heads, compared))
	return nil
}

// headsDue reports whether the provider may be asked for heads again. Large
// repositories and many of them are asked for less often than every round, so
// that most of an hour's allowance is left for other calls.
func (c *comparison) headsDue() bool {
	return c.how.byHand || !c.headsNext[c.in.Name].After(c.Now())
}

// headsWait is how long after a comparison of so many heads in so many
// projects the next one may come: some 600 calls an hour, at a hundred heads
// and at least four calls a project.
func headsWait(heads, projects int) time.Duration {
	const call = time.Hour / 600
	calls := heads/100 + 4*projects
	if calls <= 40 {
		return 0
	}
	return time.Duration(calls) * call
}

// compareProject compares one project's heads, and starts what is to be
// started by itself.
func (c *comparison) compareProject(ctx context.Context, p *ci.Project) error {
	now := c.present(p)
	repo, err := c.Provider.Repository(ctx, now)
	if err != nil {
		return err
	}
	if id := c.bound(p); id != 0 && repo.ID != id {
		return ci.Errorf(ci.CodeForbidden, "%s is the repository with id %d, and the project is bound to id %d; `docket projects repin %s` accepts the new one", now.Repository, repo.ID, id, p.Name)
	}
	mark, err := c.Store.Mark()
	if err != nil {
		return err
	}
	list, err := c.Provider.Heads(ctx, now)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(h ci.Head) bool { return !ci.ValidRef(h.Ref) || !ci.IsCommit(h.Commit) })
	c.rec.Last.Heads += len(list)
	if _, err := c.Store.SeeHeads(ctx, p.Name, mark, list); err != nil {
		return err
	}

	base, ok, err := c.Store.HeadsBase(p.Name)
	if err != nil {
		return err
	}
	in := recovery.Heads{
		Now: c.Now(), List: list, First: !ok || base.Repository.ID != repo.ID,
		Grace: recovery.Grace(c.every), Hold: c.holdHeads,
	}
	changes := store.HeadChanges{Project: p.Name}
	if in.First {
		changes.Base = &ci.HeadsBase{Repository: repo, At: ci.At(c.Now()), Heads: len(list)}
		c.log.Info("heads are known from now on", keyProject, p.Name, keyHeads, len(list))
	} else {
		if in.Known, in.Open, err = c.Store.HeadState(p.Name); err != nil {
			return err
		}
		moved := recovery.Moved(list, in.Known)
		if in.Told, err = c.Store.HeadsTold(p.Name, moved); err != nil {
			return err
		}
		if err := c.readMessages(ctx, p, &in); err != nil {
			return err
		}
	}
	in.Match = func(h *ci.Head, before string) bool {
		e := pipeline.HeadEvent(repo, h, before)
		ok, _ := pipeline.Match(p, &e)
		return ok
	}
	out := in.Compare()
	if in.First || !out.None() {
		changes.Known, changes.Open, changes.Settle, changes.Gone = out.Known, out.Open, out.Settle, out.Gone
		if err := c.Store.RecordHeads(ctx, changes); err != nil {
			return err
		}
	}
	return c.startHeads(ctx, p, repo, out.Listed)
}

// bound is the id of the repository that a project is bound to, 0 for none yet.
func (c *comparison) bound(p *ci.Project) int64 {
	if p.RepositoryID != 0 {
		return p.RepositoryID
	}
	return c.pins[p.Name].ID
}

// readMessages completes the branch heads that nothing is known of by their
// commit's message: it may ask for no run.
func (c *comparison) readMessages(ctx context.Context, p *ci.Project, in *recovery.Heads) error {
	now, read := c.present(p), 0
	for i := range in.List {
		h := &in.List[i]
		key := h.Key()
		branch, _ := ci.SplitRef(h.Ref)
		if branch == "" || h.PullRequest != nil || h.Message != "" || in.Known[key] == h.Commit || in.Told[key] {
			continue
		}
		if open, ok := in.Open[key]; ok && open.Commit == h.Commit {
			h.Message = open.Message
			continue
		}
		e := pipeline.HeadEvent(ci.Repository{}, h, in.Known[key])
		if ok, _ := pipeline.Match(p, &e); !ok || read == messages {
			continue
		}
		read++
		text, err := c.Provider.Message(ctx, now, h.Commit)
		if err != nil && !lasting(err) {
			return err
		}
		h.Message = text
	}
	return nil
}

// startHeads counts the heads without a run, and starts their runs where the
// project says so.
func (c *comparison) startHeads(ctx context.Context, p *ci.Project, repo ci.Repository, listed []ci.MissedHead) error {
	started := 0
	for i := range listed {
		h := &listed[i]
		if p.Recover != ci.RecoverRun || started == startedHeads {
			break
		}
		e := pipeline.HeadEvent(repo, &h.Head, h.Before)
		run, again, err := c.Store.StartHead(ctx, store.HeadStart{
			Project: p.Name, Key: h.Key(), Commit: h.Commit, Draft: pipeline.CompileHead(c.cfg, p, &e),
			By: ci.By{Kind: ci.ByScheduler, Name: "recovery"},
		})
		if ci.CodeOf(err) == ci.CodeConflict || ci.CodeOf(err) == ci.CodeNotFound {
			continue // its delivery came meanwhile
		}
		if err != nil {
			return fmt.Errorf("start the run of %s: %w", h.Key(), err)
		}
		if !again {
			started++
			c.log.Info("run started for a head that no delivery told of", keyProject, p.Name, keyRun, run.ID, keyHead, h.Key(), keyCommit, h.Commit)
		}
	}
	c.rec.Last.Started += started
	c.rec.Last.NoRun += len(listed) - started
	return nil
}

package server

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"docket/store"
	"docket/store/ci"
	"docket/web"
)

// runShown bounds the notifications and the decisions on a run's page.
const runShown = store.MaxLimit

// logPosition is the parameter of a run page's stream that says how much of
// the log the page has. Last-Event-ID goes before it.
const logPosition = "log"

// GET /runs/{id}
func (s *Server) runPage(c echo.Context) error {
	id := pathParam(c, "run")
	fill := func(v *visit) (web.Page, error) { return s.fillRun(v, id) }
	if wantsStream(c.Request()) {
		return s.streamPage(c, fill, s.newLogTail(c, id))
	}
	return s.show(c, fill)
}

func (s *Server) fillRun(v *visit, id string) (web.Page, error) {
	run, err := s.store.Run(id)
	if err != nil {
		return nil, err
	}
	cfg := s.config()
	project := cfg.Project(run.Project)
	if v.who == nil {
		if project == nil || !project.Public {
			return nil, errSignIn()
		}
		run = redacted(run)
	}
	entries, _, err := s.store.EntriesOf(id, runShown)
	if err != nil {
		return nil, err
	}
	v.settled = run.State.Final() && !slices.ContainsFunc(entries, func(e ci.OutboxEntry) bool { return e.State == ci.OutboxPending })
	ch, err := s.chrome(v, id, "", false)
	if err != nil {
		return nil, err
	}
	p := &web.RunPage{Chrome: ch, Run: run, Redacted: v.who == nil}
	if v.who != nil {
		if err := s.fillTrail(p, entries); err != nil {
			return nil, err
		}
	}
	if p.Waits, err = s.waits(run); err != nil {
		return nil, err
	}
	if in := cfg.Integration(run.Internal.Integration); in != nil {
		p.RepositoryURL, p.CommitURL, p.RefURL = sourceURLs(in, run.Source)
	}
	switch {
	case run.State.Final():
		if run.Source.Commit != "" && len(run.Steps) > 0 {
			p.Rerun = v.action("rerun")
		}
	case run.CancelRequested == nil:
		p.Cancel = v.action("cancel")
	}
	if run.State == ci.Held {
		p.Approve = v.action("approve")
	}
	if v.live {
		return p, nil
	}
	at, err := s.fillLog(v, p)
	if err == nil && !v.settled {
		p.Stream = withQuery(runPath(id), url.Values{logPosition: {at.String()}})
	}
	return p, err
}

// fillTrail fills in where a run came from, and what was told and decided of it.
func (s *Server) fillTrail(p *web.RunPage, entries []ci.OutboxEntry) error {
	p.Notifications = entries
	if id, err := ci.ParseReceiptID(p.Run.Cause.Receipt); err == nil {
		rec, err := s.store.Receipt(id)
		if err != nil && ci.CodeOf(err) != ci.CodeNotFound {
			return err
		}
		if err == nil {
			p.Receipt = &rec
		}
	}
	decisions, _, err := s.store.Decisions(p.Run.ID, store.Page{Limit: runShown})
	if err != nil {
		return err
	}
	slices.Reverse(decisions)
	p.Decisions = decisions
	for _, d := range decisions {
		if d.Kind == ci.DecisionSuperseded && d.OtherRun == p.Run.ID {
			p.Superseded = append(p.Superseded, d.Run)
		}
	}
	return nil
}

// waits says what a run that has not ended waits for.
func (s *Server) waits(r ci.Run) ([]web.Wait, error) {
	switch {
	case r.State == ci.Held:
		text := "Its code comes from outside, so it waits until someone approves it."
		if at := r.Internal.LapsesAt; !at.IsZero() {
			text = "Its code comes from outside, so it waits until someone approves it, and is cancelled on " + at.UTC().Format("2 January at 15:04 UTC") + " if nobody does."
		}
		return []web.Wait{{Text: text}}, nil
	case r.State == ci.Preparing:
		text := "docket asks the repository what is to be built."
		if j := r.Internal.Job; j != nil && j.LastErr != "" {
			text = "docket could not ask the repository yet and tries again: " + j.LastErr
		}
		return []web.Wait{{Text: text}}, nil
	case r.State != ci.Queued:
		return nil, nil
	}
	ahead, err := s.store.Ahead(r)
	if err != nil {
		return nil, err
	}
	most := s.config().Limits.ConcurrentRuns
	running, err := s.store.Active(most + 1)
	if err != nil {
		return nil, err
	}
	list := []web.Wait{}
	if w := r.WaitingFor; w != nil && w.Run == "" {
		list = append(list, web.Wait{Text: "Of its concurrency group one runs at a time, and another run comes first."})
	} else if w != nil {
		list = append(list, web.Wait{Text: "Of the concurrency group " + w.Group + " one runs at a time: run " + w.Run + " comes first.", Href: runPath(w.Run)})
	}
	if most > 0 && len(running) >= most {
		list = append(list, web.Wait{Text: fmt.Sprintf("All places are taken: limits.concurrent_runs is %d.", most), Href: "/"})
	}
	if ahead > 0 {
		text := "1 run is ahead of it."
		if ahead > 1 {
			text = strconv.Itoa(ahead) + " runs are ahead of it."
		}
		list = append(list, web.Wait{Text: text, Href: "/"})
	}
	if s.ready != nil {
		for _, reason := range s.ready() {
			list = append(list, web.Wait{Text: reason})
		}
	}
	if len(list) == 0 {
		list = append(list, web.Wait{Text: "It is the next one to begin."})
	}
	return list, nil
}

package server

import (
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"docket/store"
	"docket/store/ci"
	"docket/web"
)

const (
	overviewRunning = 50 // runs that the overview shows
	overviewWaiting = 20
	overviewHistory = 40 // bars of a project
	overviewHeads   = 6  // branches of a project
)

// GET /
func (s *Server) overview(c echo.Context) error { return s.show(c, s.fillOverview) }

func (s *Server) fillOverview(v *visit) (web.Page, error) {
	cfg := s.config()
	ch, err := s.chrome(v, "Overview", web.SectionOverview, true)
	if err != nil {
		return nil, err
	}
	p := &web.Overview{Chrome: ch}
	if p.Setup, err = s.firstSteps(v.c, cfg); err != nil {
		return nil, err
	}
	running, err := s.store.Active(overviewRunning)
	if err != nil {
		return nil, err
	}
	waiting, more, err := s.store.Waiting(overviewWaiting)
	if err != nil {
		return nil, err
	}
	p.Running, p.Waiting, p.MoreWaiting = web.NewRunRows(running), web.NewRunRows(waiting), more
	for i := range cfg.Projects {
		card, err := s.projectCard(&cfg.Projects[i], v.now)
		if err != nil {
			return nil, err
		}
		p.Projects = append(p.Projects, card)
	}
	return p, nil
}

func (s *Server) projectCard(p *ci.Project, now time.Time) (web.ProjectCard, error) {
	card := web.ProjectCard{Name: p.Name, Repository: p.Repository, Public: p.Public}
	runs, _, err := s.store.Runs(store.RunFilter{Project: p.Name}, store.Page{Limit: overviewHistory})
	if err != nil {
		return card, err
	}
	card.History = bars(runs, now)
	card.Heads, card.MoreHeads, err = s.heads(p.Name, p.DefaultBranch, runs, overviewHeads)
	return card, err
}

// bars draws runs, the newest first, as history. A running one grows in leaps,
// so that a page is not sent anew for each second of it.
func bars(runs []ci.Run, now time.Time) []web.Bar {
	const leap = 10 * time.Second
	list := make([]web.Bar, 0, len(runs))
	for _, r := range slices.Backward(runs) {
		list = append(list, web.NewBar(r, now.Truncate(leap)))
	}
	return list
}

// heads returns how the branches of recent runs stand: the default branch
// first, then the newest, and how many more there are among those runs.
func (s *Server) heads(project, defaultBranch string, runs []ci.Run, most int) (list []web.Head, more int, err error) {
	var names []string
	add := func(branch string) {
		if branch != "" && !slices.Contains(names, branch) {
			names = append(names, branch)
		}
	}
	add(defaultBranch)
	byID := map[string]ci.Run{}
	for _, r := range runs {
		byID[r.ID] = r
		if r.Source.PullRequest == nil {
			add(r.Source.Branch)
		}
	}
	for _, name := range names {
		h, err := s.store.HeadOf(project, name)
		if ci.CodeOf(err) == ci.CodeNotFound {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		if len(list) == most {
			more++
			continue
		}
		r, ok := byID[h.Run]
		if !ok {
			if r, err = s.store.Run(h.Run); err != nil && ci.CodeOf(err) != ci.CodeNotFound {
				return nil, 0, err
			}
		}
		list = append(list, web.Head{
			Branch: name, Default: name == defaultBranch, Run: h.Run, State: h.State, Commit: h.Commit,
			Title: r.Internal.Title, At: r.CreatedAt,
		})
	}
	return list, more, nil
}

// firstSteps are the steps to a first green run, nil after it.
func (s *Server) firstSteps(c echo.Context, cfg *ci.Config) (*web.FirstSteps, error) {
	p, err := s.store.Progress()
	if err != nil || p.Succeeded {
		return nil, err
	}
	f := &web.FirstSteps{Connected: p.Delivered, Started: p.Started}
	base, _ := s.baseURL(c)
	if len(cfg.Integrations) > 0 {
		f.HookURL = hookURL(base, cfg.Integrations[0].Name)
	}
	if len(cfg.Projects) > 0 {
		f.Project = cfg.Projects[0].Name
	}
	return f, nil
}

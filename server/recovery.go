package server

import (
	"context"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"docket/scheduler/pipeline"
	"docket/store"
	"docket/store/ci"
)

// maxSince bounds how far back somebody may have deliveries compared: no
// provider keeps them longer.
const maxSince = 7 * 24 * time.Hour

// maxMissed bounds how many missed deliveries of an integration are shown.
const maxMissed = 200

// recoveryState is how far an integration was compared, with what is missing.
type recoveryState struct {
	ci.Recovery
	Enabled bool                `json:"enabled"`
	Why     string              `json:"why"` // why not, where it is not
	Missed  []ci.MissedDelivery `json:"missed"`
}

// GET /recoveries
func (s *Server) listRecoveries(c echo.Context) error {
	cfg := s.config()
	list := make([]recoveryState, 0, len(cfg.Integrations))
	for i := range cfg.Integrations {
		r, err := s.recovery(&cfg.Integrations[i])
		if err != nil {
			return err
		}
		list = append(list, r)
	}
	return listing(c, "recoveries", list, "")
}

func (s *Server) recovery(in *ci.Integration) (r recoveryState, err error) {
	r.Enabled, r.Why = in.Recovers()
	if r.Recovery, err = s.store.Recovery(in.Name); err != nil {
		return r, err
	}
	r.Missed, err = s.store.Missed(in.Name, maxMissed)
	return r, err
}

// recoverRequest asks for a comparison now.
type recoverRequest struct {
	Integration string `json:"integration"`
	Since       string `json:"since"`
}

// POST /recover
func (s *Server) recoverNow(c echo.Context) error {
	var req recoverRequest
	if err := decode(c, &req); err != nil {
		return err
	}
	var since time.Duration
	if req.Since != "" {
		d, err := time.ParseDuration(req.Since)
		if err != nil || d <= 0 || d > maxSince {
			return ci.Errorf(ci.CodeInvalid, "since is %q; want a duration of up to 168h, as in 72h", req.Since)
		}
		since = d
	}
	if s.recover == nil {
		return ci.Errorf(ci.CodeConflict, "no provider can be asked from here; ask the server that runs the scheduler")
	}
	// The answer has to be written before the connection's time is up.
	ctx, cancel := context.WithTimeout(c.Request().Context(), writeTimeout-10*time.Second)
	defer cancel()
	list, err := s.recover(ctx, req.Integration, since, by(c))
	if err != nil {
		return err
	}
	states := make([]recoveryState, 0, len(list))
	for _, r := range list {
		in := s.config().Integration(r.Integration)
		if in == nil {
			continue
		}
		state, err := s.recovery(in)
		if err != nil {
			return err
		}
		state.Recovery = r
		states = append(states, state)
	}
	return listing(c, "recoveries", states, "")
}

// GET /gaps
func (s *Server) listGaps(c echo.Context) error {
	p, err := page(c)
	if err != nil {
		return err
	}
	list, next, err := s.store.Gaps(p)
	if err != nil {
		return err
	}
	return listing(c, "gaps", list, next)
}

// missedHead is a head that no run is known of, as the API shows it.
type missedHead struct {
	ci.MissedHead
	Branch string `json:"branch,omitempty"`
	Tag    string `json:"tag,omitempty"`
	Key    string `json:"key"` // what names it in its project
}

func publicHead(m ci.MissedHead) missedHead {
	out := missedHead{MissedHead: m, Key: m.Key()}
	out.Branch, out.Tag = ci.SplitRef(m.Ref)
	return out
}

// GET /heads
func (s *Server) listHeads(c echo.Context) error {
	cfg, name := s.config(), c.QueryParam("project")
	if name != "" && cfg.Project(name) == nil {
		return noProject(name)
	}
	list := []missedHead{}
	for i := range cfg.Projects {
		if p := &cfg.Projects[i]; name == "" || p.Name == name {
			heads, err := s.store.MissedHeads(p.Name)
			if err != nil {
				return err
			}
			for _, m := range heads {
				list = append(list, publicHead(m))
			}
		}
	}
	return listing(c, "heads", list, "")
}

// headRequest names a head at a commit. The three together are the identity of
// the run that is started for it.
type headRequest struct {
	Project     string `json:"project"`
	Ref         string `json:"ref"`
	PullRequest int    `json:"pull_request"`
	Commit      string `json:"commit"`
}

// POST /heads/start
func (s *Server) startHead(c echo.Context) error {
	var req headRequest
	if err := decode(c, &req); err != nil {
		return err
	}
	key := req.Ref
	switch {
	case req.Project == "":
		return ci.Errorf(ci.CodeInvalid, "project is missing; name the project whose head is to be started")
	case (req.Ref == "") == (req.PullRequest == 0):
		return ci.Errorf(ci.CodeInvalid, "name either ref, as in refs/heads/main, or pull_request")
	case req.PullRequest < 0:
		return ci.Errorf(ci.CodeInvalid, "pull_request is %d; want its number", req.PullRequest)
	case !ci.IsCommit(req.Commit):
		return ci.Errorf(ci.CodeInvalid, "commit %q is not a full commit id; give all 40 or 64 lower-case hex digits, as GET /heads shows them", clip(req.Commit))
	case req.PullRequest > 0:
		key = "#" + strconv.Itoa(req.PullRequest)
	}
	run, again, err := s.startOfHead(c.Request().Context(), req.Project, key, req.Commit, by(c))
	if err != nil {
		return err
	}
	return s.answerNewRun(c, run, again)
}

// startOfHead starts the run of a head, or returns the one that was started.
func (s *Server) startOfHead(ctx context.Context, project, key, commit string, who ci.By) (run ci.Run, again bool, err error) {
	if run, again, err = s.store.StartedHead(project, key, commit); again || err != nil {
		return run, again, err
	}
	cfg := s.config()
	p := cfg.Project(project)
	if p == nil {
		return run, false, noProject(project)
	}
	m, err := s.store.MissedHead(project, key, commit)
	if err != nil {
		return run, false, err
	}
	base, _, err := s.store.HeadsBase(project)
	if err != nil {
		return run, false, err
	}
	e := pipeline.HeadEvent(base.Repository, &m.Head, m.Before)
	return s.store.StartHead(ctx, store.HeadStart{Project: project, Key: key, Commit: commit, Draft: pipeline.CompileHead(cfg, p, &e), By: who})
}

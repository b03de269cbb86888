package server

import (
	"slices"
	"strings"

	"docket/scheduler/pipeline"
	"docket/store"
	"docket/store/ci"
)

// verdict is what a delivery leads to under one configuration.
type verdict struct {
	reason       string // why it starts nothing, where drafts is empty
	drafts       []ci.Draft
	cancels      []store.Cancel
	pin          []string // projects of its repository
	refuseReplay bool
	installation bool // the error is about the installation
}

// judge decides what a verified event leads to. It writes nothing.
//
// CodeForbidden: the installation or the repository is not one of ours.
func (s *Server) judge(cfg *ci.Config, in *ci.Integration, e *ci.Event, receipt ci.ReceiptID) (verdict, error) {
	if err := allowInstallation(in, e); err != nil {
		return verdict{installation: true}, err
	}
	if e.Repository.FullName == "" {
		return verdict{reason: nowhere(e)}, nil
	}
	pins, err := s.store.Pins()
	if err != nil {
		return verdict{}, err
	}
	projects, err := projectsOf(cfg, in, e.Repository, pins)
	if err != nil {
		return verdict{}, err
	}
	var v verdict
	var reasons []string
	for _, p := range projects {
		if e.Repository.ID != 0 {
			v.pin = append(v.pin, p.Name)
		}
		if scope := pipeline.Cancels(p.Name, e); scope != "" {
			v.cancels = append(v.cancels, store.Cancel{Project: p.Name, Scope: scope, Ref: e.Ref, Reason: "the branch " + e.Branch + " was deleted"})
		}
		ok, reason := pipeline.Match(p, e)
		if !ok {
			reasons = append(reasons, p.Name+": "+reason)
			v.reason = reason
			continue
		}
		v.drafts = append(v.drafts, pipeline.Compile(cfg, p, e, receipt.String()))
		v.refuseReplay = v.refuseReplay || p.Replays == ci.ReplaysRefuse
	}
	if len(reasons) > 1 {
		v.reason = strings.Join(reasons, "; ")
	}
	if len(v.drafts) > 0 {
		v.reason = ""
	}
	return v, nil
}

// nowhere says why an event without a repository's full name starts nothing.
// Some events of organisations and Apps have none, and of merge groups the id
// alone.
func nowhere(e *ci.Event) string {
	if e.Problem != "" {
		return e.Problem
	}
	return "the event " + e.Kind + " names no repository, so it starts nothing"
}

// allowInstallation holds the payload's installation against the configured
// ones. Where none are configured, only a webhook without one is ours. Where
// some are, the integration is a GitHub App's: what names a repository must
// name its installation too. What names neither (the ping of a new App) can
// start nothing anyway and passes.
func allowInstallation(in *ci.Integration, e *ci.Event) error {
	switch {
	case e.Installation == 0 && (len(in.Installations) == 0 || e.Repository.FullName == ""):
		return nil
	case e.Installation == 0:
		return ci.Errorf(ci.CodeForbidden, "the payload names no installation, but the integration %q takes those of its GitHub App only; give a repository's own webhook an integration without `installations`", in.Name)
	case slices.Contains(in.Installations, e.Installation):
		return nil
	}
	return ci.Errorf(ci.CodeForbidden, "the installation %d is not one of the integration %q; add it to `installations` if it should be", e.Installation, in.Name)
}

// repositoryID is the repository that a project is bound to: the configured
// id, else the one it was pinned to; 0 for not yet.
func repositoryID(p *ci.Project, pin ci.Repository) int64 {
	if p.RepositoryID != 0 {
		return p.RepositoryID
	}
	return pin.ID
}

// projectsOf returns an integration's projects of a repository: by id where
// they are bound to one, else by name. A name that belongs to another id is
// refused for every project that is not bound: somebody else may hold it now.
func projectsOf(cfg *ci.Config, in *ci.Integration, r ci.Repository, pins map[string]ci.Repository) ([]*ci.Project, error) {
	var bound, unbound []*ci.Project
	var stranger *ci.Project
	for i := range cfg.Projects {
		p := &cfg.Projects[i]
		if p.Integration != in.Name {
			continue
		}
		id := repositoryID(p, pins[p.Name])
		switch {
		case id != 0 && id == r.ID:
			bound = append(bound, p)
		case !ci.SameRepository(p.Repository, r.FullName):
		case id != 0:
			stranger = p
		default:
			unbound = append(unbound, p)
		}
	}
	if stranger != nil {
		unbound = nil
	}
	switch {
	case len(bound)+len(unbound) > 0:
		return append(bound, unbound...), nil
	case stranger != nil && stranger.RepositoryID != 0:
		return nil, ci.Errorf(ci.CodeForbidden, "%s is now the repository with id %d, but the project %q is configured for id %d; change repository_id if that is meant", clip(r.FullName), r.ID, stranger.Name, stranger.RepositoryID)
	case stranger != nil:
		return nil, ci.Errorf(ci.CodeForbidden, "%s is now the repository with id %d, but the project %q is pinned to id %d; `docket projects repin %s` accepts the new one", clip(r.FullName), r.ID, stranger.Name, pins[stranger.Name].ID, stranger.Name)
	}
	return nil, ci.Errorf(ci.CodeForbidden, "the repository %q (id %d) belongs to no project of the integration %q; add a project for it, or remove this webhook", clip(r.FullName), r.ID, in.Name)
}

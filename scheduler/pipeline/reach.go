package pipeline

import (
	"fmt"
	"slices"

	"docket/store/ci"
)

// An integration that lost a repository gets nothing of it any more and can
// tell nobody how its runs went: what waits there would wait for nobody.

// lost says why an event takes repositories out of an integration's reach, ""
// if it does not. Which ones, covers tells.
func lost(e *ci.Event) string {
	switch {
	case e.Kind == ci.EventInstallation && e.Action == "deleted":
		return fmt.Sprintf("installation %d was deleted", e.Installation)
	case e.Kind == ci.EventInstallation && e.Action == "suspend":
		return fmt.Sprintf("installation %d was suspended", e.Installation)
	case e.Kind == ci.EventInstallationRepos && e.Action == "removed":
		return fmt.Sprintf("installation %d does not cover the repository any more", e.Installation)
	case e.Kind == ci.EventRepository && e.Action == "deleted":
		return "the repository " + e.Repository.FullName + " was deleted"
	}
	return ""
}

// covers reports whether an installation's event is about a project's
// repository: it names it, or it names none and the integration has no other
// installation.
func covers(in *ci.Integration, e *ci.Event, p *ci.Project, pin ci.Repository) bool {
	if e.Kind == ci.EventInstallation && len(e.Repositories) == 0 {
		return len(in.Installations) == 1
	}
	return slices.ContainsFunc(e.Repositories, func(name string) bool {
		return ci.SameRepository(name, p.Repository) || pin.FullName != "" && ci.SameRepository(name, pin.FullName)
	})
}

// nowhere judges an event that names no repository. Some events of
// organisations and Apps have none.
func nowhere(cfg *ci.Config, in *ci.Integration, e *ci.Event, pins map[string]ci.Repository) Judgement {
	j := Judgement{Reason: Happened(e)}
	if e.Problem != "" {
		j.Reason = e.Problem
		return j
	}
	why := lost(e)
	for i := range cfg.Projects {
		if p := &cfg.Projects[i]; why != "" && p.Integration == in.Name && covers(in, e, p, pins[p.Name]) {
			c := ci.Cancel{Project: p.Name, All: true, Reason: why}
			j.Cancels = append(j.Cancels, c)
			j.Rulings = append(j.Rulings, ci.Ruling{Project: p.Name, Reason: j.Reason, Cancels: cancelled(&c)})
		}
	}
	return j
}

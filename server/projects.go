package server

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"docket/scheduler/pipeline"
	"docket/store/ci"
)

// project is a project as the API shows it: what is configured, the
// repository it is pinned to, and how its branches stand.
type project struct {
	Name          string             `json:"name"`
	Integration   string             `json:"integration"`
	Repository    string             `json:"repository"`    // as configured
	RepositoryID  int64              `json:"repository_id"` // 0: not pinned yet
	PinnedName    string             `json:"pinned_name"`   // the repository's name at its last delivery
	DefaultBranch string             `json:"default_branch"`
	Inputs        []ci.Input         `json:"inputs"`
	Supersede     ci.SupersedePolicy `json:"supersede"`
	Public        bool               `json:"public"`
	Latest        map[string]latest  `json:"latest"` // by branch
	Schedules     []schedule         `json:"schedules"`
}

// latest is how a branch stands.
type latest struct {
	Run    string   `json:"run"`
	State  ci.State `json:"state"`
	Commit string   `json:"commit"`
}

func noProject(name string) error {
	return ci.Errorf(ci.CodeNotFound, "no project %q is configured; `docket projects list` shows those that are", name)
}

func (s *Server) publicProject(p *ci.Project, pin ci.Repository) (project, error) {
	out := project{
		Name:          p.Name,
		Integration:   p.Integration,
		Repository:    p.Repository,
		RepositoryID:  pipeline.RepositoryID(p, pin),
		PinnedName:    pin.FullName,
		DefaultBranch: p.DefaultBranch,
		Inputs:        []ci.Input{},
		Supersede:     p.Supersede,
		Public:        p.Public,
		Latest:        map[string]latest{},
	}
	for _, in := range p.Inputs {
		if in.Options == nil {
			in.Options = []string{}
		}
		out.Inputs = append(out.Inputs, in)
	}
	var err error
	if out.Schedules, err = s.schedules(p, s.now()); err != nil {
		return out, err
	}
	heads, err := s.store.Heads(p.Name)
	for _, h := range heads {
		out.Latest[h.Branch] = latest{Run: h.Run, State: h.State, Commit: h.Commit}
	}
	return out, err
}

// GET /projects
func (s *Server) listProjects(c echo.Context) error {
	pins, err := s.store.Pins()
	if err != nil {
		return err
	}
	cfg := s.config()
	list := make([]project, 0, len(cfg.Projects))
	for i := range cfg.Projects {
		p := &cfg.Projects[i]
		out, err := s.publicProject(p, pins[p.Name])
		if err != nil {
			return err
		}
		list = append(list, out)
	}
	return listing(c, "projects", list, "")
}

// GET /projects/{project}
func (s *Server) getProject(c echo.Context) error {
	p := s.config().Project(pathParam(c, "project"))
	if p == nil {
		return noProject(pathParam(c, "project"))
	}
	return s.answerProject(c, p)
}

func (s *Server) answerProject(c echo.Context, p *ci.Project) error {
	pins, err := s.store.Pins()
	if err != nil {
		return err
	}
	out, err := s.publicProject(p, pins[p.Name])
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// repin is the request to pin a project to another repository. ID 0, or none,
// leaves it to the next signed delivery.
type repin struct {
	ID int64 `json:"id"`
}

// POST /projects/{project}/repin
func (s *Server) repinProject(c echo.Context) error {
	p := s.config().Project(pathParam(c, "project"))
	if p == nil {
		return noProject(pathParam(c, "project"))
	}
	var to repin
	if err := decode(c, &to); err != nil {
		return err
	}
	if to.ID < 0 {
		return ci.Errorf(ci.CodeInvalid, "id is %d; want the provider's number of the repository, or none to take that of the next signed delivery", to.ID)
	}
	if p.RepositoryID != 0 && to.ID != p.RepositoryID {
		return ci.Errorf(ci.CodeConflict, "the configuration sets repository_id: %d for the project %q, and that decides; change it there", p.RepositoryID, p.Name)
	}
	if err := s.store.Repin(c.Request().Context(), p.Name, to.ID, by(c)); err != nil {
		return err
	}
	return s.answerProject(c, p)
}

package server

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"docket/store"
	"docket/store/ci"
)

// eventStream is the content type of a followed log.
const eventStream = "text/event-stream"

// Which steps of a log are wanted, beside a step's index.
const (
	preparation = -1 // docket's own part, before the first step
	allSteps    = -2
)

// preparationStep is the name of docket's own part of a log. No step can have
// it: a configured name has no @ at its start.
const preparationStep = "@checkout"

// GET /runs/{id}/logs: the steps' bytes in order, and a line of docket's
// own, "[docket] ...", only where something befell a step's output; or with
// follow every chunk as an event.
func (s *Server) getLogs(c echo.Context) error {
	run, err := s.store.Run(pathParam(c, "run"))
	if err != nil {
		return err
	}
	step, err := s.wantedStep(c, run)
	if err != nil {
		return err
	}
	follow := c.QueryParam("follow")
	if (follow != "" && follow != "0" && follow != "false") ||
		strings.HasPrefix(c.Request().Header.Get(echo.HeaderAccept), eventStream) {
		return s.followLog(c, run.ID, step)
	}
	return s.sendLog(c, run, step)
}

// wantedStep reads which step of a run's log a request is for.
func (s *Server) wantedStep(c echo.Context, run ci.Run) (int, error) {
	name, ok := query(c, "step")
	if !ok {
		return allSteps, nil
	}
	names, err := s.stepNames(run)
	if err != nil {
		return 0, err
	}
	return stepIndex(run.ID, names, name)
}

// sendLog answers with a log as plain text.
func (s *Server) sendLog(c echo.Context, run ci.Run, step int) error {
	h := c.Response().Header()
	r, err := s.store.Logs().Open(run.ID, 0)
	if ci.CodeOf(err) == ci.CodeNotFound && run.State.Final() && !run.StartedAt.IsZero() {
		return ci.Errorf(ci.CodeNotFound, "the log of run %s is not there any more: retention has removed it, or it is not in the backup that this store is from", run.ID)
	}
	h.Set(echo.HeaderContentType, echo.MIMETextPlainCharsetUTF8)
	if ci.CodeOf(err) == ci.CodeNotFound { // the run is there, its log is still empty
		return c.NoContent(http.StatusOK)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	return copyLog(newStream(c), r, step)
}

func copyLog(to io.Writer, r *store.LogReader, step int) error {
	for {
		chunk, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		// docket's preparation is shown to those who follow, or ask for it by
		// name. What it has to say of a step (output dropped, a process left
		// behind) belongs to the step: nobody may take a cut log for a whole one.
		if !wanted(chunk.Step, step) || chunk.Step == preparation && step != preparation {
			continue
		}
		if _, err := to.Write(chunk.Data); err != nil {
			return nil // who went away is told nothing
		}
	}
}

// wanted reports whether a chunk's step is asked for.
func wanted(chunk, step int) bool { return step == allSteps || chunk == step }

// stepNames returns the names of a run's steps: its frozen spec's, which is
// there before the first of them starts.
func (s *Server) stepNames(run ci.Run) ([]string, error) {
	var names []string
	for _, r := range run.Steps {
		names = append(names, r.Name)
	}
	if len(names) > 0 || run.Spec == "" {
		return names, nil
	}
	spec, err := s.store.Spec(run.Spec)
	if err != nil {
		return nil, err
	}
	for _, st := range spec.Steps {
		names = append(names, st.Name)
	}
	return names, nil
}

func stepIndex(run string, names []string, name string) (int, error) {
	if name == preparationStep {
		return preparation, nil
	}
	for i, n := range names {
		if n == name {
			return i, nil
		}
	}
	return 0, ci.Errorf(ci.CodeNotFound, "the run %s has no step %q; it has: %s", run, clip(name), strings.Join(append(names, preparationStep), ", "))
}

package server

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"docket/scheduler/pipeline"
	"docket/store/ci"
	"docket/web"
)

// maxForm bounds every form but those for signing in, in bytes.
const maxForm = maxAPIBody

// newRunForm is a form that nobody has filled in yet.
func newRunForm(p *ci.Project, key string) *web.RunForm {
	return &web.RunForm{
		Action: projectPath(p.Name) + "/runs", Key: key, RefKind: "branch", Ref: p.DefaultBranch,
		Inputs: web.NewFormInputs(p.Inputs),
	}
}

// formKey returns the idempotency key that a form carries.
func formKey(form url.Values) (string, error) {
	key := form.Get(web.FieldKey)
	if k := form.Get(web.FieldNewKey); k != "" {
		key = k
	}
	if !ci.PrintableKey(key) {
		return "", ci.Errorf(ci.CodeMalformed, "the form came without the key that tells it from others; open its page again and send it from there")
	}
	return key, nil
}

// POST /projects/{project}/runs: the same form sent again leads to the same
// run, and the form with other values to that run's address.
func (s *Server) startByForm(c echo.Context) error {
	watch, cfg := s.stopwatch(), s.config()
	p := cfg.Project(pathParam(c, "project"))
	if p == nil {
		return noProject(pathParam(c, "project"))
	}
	fields, err := postForm(c, maxForm)
	if err != nil {
		return err
	}
	key, err := formKey(fields)
	if err != nil {
		return err
	}
	form := sentForm(p, key, fields)
	req, ok := checkForm(p, form, fields)
	if !ok {
		return s.formAgain(c, http.StatusUnprocessableEntity, form)
	}
	watch.mark(&watch.judged)
	run, again, err := s.request(c.Request().Context(), cfg, p, key, req, by(c))
	watch.mark(&watch.committed)
	var e *ci.Error
	switch {
	case err == nil:
		err := seeOther(c, runPath(run.ID))
		s.traceRequest(&watch, c, run.ID, again)
		return err
	case !errors.As(err, &e):
		return err
	case e.Code == ci.CodeConflict && e.ExistingRun != "":
		form.ConflictRun, form.NewKey = e.ExistingRun, formKeys{}.of("new")
	case e.Code == ci.CodeInvalid, e.Code == ci.CodeConflict:
		form.Error = e.Message
	default:
		return err
	}
	return s.formAgain(c, statusOf(e.Code), form)
}

// formAgain shows a form that was refused as it was sent, under the same key.
func (s *Server) formAgain(c echo.Context, status int, form *web.RunForm) error {
	form.Open = true
	v := s.visit(c)
	v.path = projectPath(pathParam(c, "project"))
	page, err := s.fillProject(v, form)
	if err != nil {
		return err
	}
	return s.render(c, status, page)
}

// sentForm is the form with what was entered.
func sentForm(p *ci.Project, key string, fields url.Values) *web.RunForm {
	form := newRunForm(p, key)
	if fields.Get(web.FieldRefKind) == "tag" {
		form.RefKind = "tag"
	}
	form.Ref = strings.TrimSpace(fields.Get(web.FieldRef))
	form.Commit = strings.TrimSpace(fields.Get(web.FieldCommit))
	form.Reason = strings.TrimSpace(fields.Get(web.FieldReason))
	for i := range form.Inputs {
		if v, ok := fields[web.FieldInput+form.Inputs[i].Name]; ok {
			form.Inputs[i].Value = v[0]
		}
	}
	return form
}

// checkForm makes the request that a form stands for, and notes at each field
// what is wrong with it. The rules are those of the API.
func checkForm(p *ci.Project, form *web.RunForm, fields url.Values) (req ci.Request, ok bool) {
	ok = true
	check := func(to *string, r ci.Request) {
		if _, err := pipeline.Normalize(p, r); err != nil {
			*to, ok = ci.MessageOf(err), false
		}
	}
	req = ci.Request{Commit: strings.ToLower(form.Commit), Reason: form.Reason}
	if form.RefKind == "tag" {
		req.Tag = form.Ref
	} else {
		req.Branch = form.Ref
	}
	if form.RefKind == "tag" && form.Ref == "" {
		form.RefError, ok = "name the tag to build", false
	} else {
		check(&form.RefError, ci.Request{Branch: req.Branch, Tag: req.Tag})
	}
	// Each of the others is looked at alone, beside a branch that is right.
	const other = "main"
	check(&form.CommitError, ci.Request{Branch: other, Commit: req.Commit})
	check(&form.ReasonError, ci.Request{Branch: other, Reason: req.Reason})
	for name, values := range fields {
		name, is := strings.CutPrefix(name, web.FieldInput)
		if !is {
			continue
		}
		if req.Inputs == nil {
			req.Inputs = map[string]string{}
		}
		req.Inputs[name] = values[0]
		to := &form.Error
		for i := range form.Inputs {
			if form.Inputs[i].Name == name {
				to = &form.Inputs[i].Error
			}
		}
		check(to, ci.Request{Branch: other, Inputs: map[string]string{name: values[0]}})
	}
	return req, ok
}

package github

import (
	"strings"

	"docket/server/payload"
	"docket/store/ci"
)

// check is a check run or a check suite.
type check struct {
	there               bool
	headSHA, externalID string
	app, suiteApp       payload.ID
}

func (v *check) read(r *payload.Reader, name string) {
	*v = check{}
	v.there = r.Object(name, func(key string) {
		switch key {
		case "head_sha":
			r.Text(name+".head_sha", &v.headSHA)
		case "external_id":
			r.Text(name+".external_id", &v.externalID)
		case "app":
			readApp(r, name, &v.app)
		case "check_suite":
			v.suiteApp = payload.ID{}
			r.Object(name+".check_suite", func(k string) {
				if k == "app" {
					readApp(r, name+".check_suite", &v.suiteApp)
				} else {
					r.Skip()
				}
			})
		default:
			r.Skip()
		}
	})
}

func readApp(r *payload.Reader, name string, v *payload.ID) {
	*v = payload.ID{}
	r.Object(name+".app", func(key string) {
		if key == "id" {
			v.Read(r)
		} else {
			r.Skip()
		}
	})
}

// checks fills in GitHub's check_run and check_suite events.
func (b *body) checks(e *ci.Event) {
	needRepository(e)
	v := &b.check
	if !v.there {
		problem(e, "the delivery is labelled %s, but its payload has none", e.Kind)
		return
	}
	setCommit(e, e.Kind+"'s head_sha", v.headSHA)
	app := v.app.N
	if app == 0 {
		app = v.suiteApp.N
	}
	e.Check = &ci.Check{App: app, Commit: e.Commit, ExternalID: strings.Clone(payload.Clip(v.externalID, maxExternalID))}
}

// maxExternalID bounds what is kept of a check's external_id, in bytes.
const maxExternalID = 200

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"docket/dispatcher/forge"
	"docket/store/ci"
)

// maxLooked bounds how many repositories of an integration are asked about.
const maxLooked = 20

// lookAtIntegration asks the provider what the token or App may do in the
// repository of each project.
func (d *doctor) lookAtIntegration(ctx context.Context, in *ci.Integration) []finding {
	if !in.Reports() {
		return []finding{warning("give it token or app", "it has neither token nor app, so the provider is told nothing")}
	}
	projects := d.projectsOf(in)
	if len(projects) == 0 {
		return []finding{warning("add a project", "no project uses it")}
	}
	left := len(projects) - maxLooked
	checks := make([]check, 0, maxLooked)
	for _, p := range projects[:min(maxLooked, len(projects))] {
		checks = append(checks, check{p.Repository, func(ctx context.Context) []finding {
			if in.Provider == ci.ProviderGitea {
				return []finding{d.lookAtGitea(ctx, in, p)}
			}
			return d.lookAtRepository(ctx, in, p)
		}})
	}
	var list []finding
	good := 0
	for _, f := range runChecks(ctx, checks) {
		if f.State == stateOK {
			good++
			continue
		}
		list = append(list, f)
	}
	if len(list) == 0 {
		says := fmt.Sprintf("it may do what docket needs in %d repositories", good)
		if good == 1 {
			says = "it may do what docket needs in " + projects[0].Repository
		}
		if left > 0 {
			says += fmt.Sprintf("; %d more were not looked at", left)
		}
		list = append(list, fine("%s", says))
	}
	return list
}

// projectsOf returns an integration's projects, one for each repository.
func (d *doctor) projectsOf(in *ci.Integration) (list []ci.Project) {
	seen := map[string]bool{}
	for _, p := range d.cfg.Projects {
		if key := strings.ToLower(p.Repository); p.Integration == in.Name && !seen[key] {
			seen[key] = true
			list = append(list, p)
		}
	}
	return list
}

// lookAtRepository looks at all that docket does at GitHub with a repository:
// report, fetch, and look for what did not arrive. It returns one finding if
// all is well.
func (d *doctor) lookAtRepository(ctx context.Context, in *ci.Integration, p ci.Project) (list []finding) {
	report := forge.Statuses
	if in.Report == ci.ReportChecks {
		report = forge.Checks
	}
	needs := []forge.Need{report, forge.Contents}
	recovers, _ := in.Recovers()
	if recovers && in.App != nil {
		needs = append(needs, forge.Heads)
	}
	for _, need := range needs {
		err := d.forge.May(ctx, p, need)
		if err == nil {
			continue
		}
		if f := refusedBy(err); !slices.Contains(list, f) {
			list = append(list, f)
		}
		if ci.CodeOf(err) != ci.CodeForbidden { // the others would say the same
			return list
		}
	}
	if recovers && d.cfg.PublicURL != "" {
		if f := d.lookAtHook(ctx, p); f.State != stateOK {
			list = append(list, f)
		}
	}
	if len(list) == 0 {
		list = append(list, fine("all is allowed"))
	}
	return list
}

// refusedBy makes a finding of what the way to the provider says.
func refusedBy(err error) finding {
	var limit *forge.LimitError
	var clock *forge.ClockError
	switch {
	case errors.As(err, &limit):
		return warning("wait until then", "%s", limit.Error())
	case errors.As(err, &clock):
		return wrong("set it by NTP", "%s", clock.Error())
	}
	mend := ""
	if ci.CodeOf(err) == ci.CodeUnavailable {
		mend = "check api_url, DNS and the firewall, or try again later"
	}
	return wrong(mend, "%s", ci.MessageOf(err))
}

// lookAtHook looks at the webhook that is to bring a repository's deliveries.
func (d *doctor) lookAtHook(ctx context.Context, p ci.Project) finding {
	h, err := d.forge.Hook(ctx, p, d.cfg.PublicURL)
	switch {
	case err != nil:
		return refusedBy(err)
	case !h.Active:
		return wrong("switch it on in the repository's settings under Webhooks", "the webhook %d of %s is switched off, so nothing arrives", h.ID, p.Repository)
	case h.LastCode == http.StatusUnauthorized:
		return wrong("give both sides the same secret", "the newest delivery of the webhook %d of %s was answered 401: its secret is not among webhook_secrets", h.ID, p.Repository)
	case h.LastCode >= 400:
		return warning("look at Recent Deliveries in the repository's settings under Webhooks", "the newest delivery of the webhook %d of %s was answered %d", h.ID, p.Repository, h.LastCode)
	}
	return fine("its webhook is there")
}

// lookAtGitea asks Gitea or Forgejo whether the token's owner may write to a
// repository, which statuses need.
func (d *doctor) lookAtGitea(ctx context.Context, in *ci.Integration, p ci.Project) finding {
	address := in.APIURL + "repos/" + p.Repository
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return wrong("correct api_url and repository", "%s is no address", address)
	}
	req.Header.Set("Authorization", "token "+in.Token.Reveal())
	req.Header.Set("Accept", "application/json")
	resp, err := plain().Do(req)
	if err != nil {
		return wrong("check api_url, DNS and the firewall", "%s cannot be reached: %s", req.URL.Host, short(err))
	}
	defer resp.Body.Close()
	var r struct {
		Permissions struct{ Admin, Push bool }
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return wrong("make a new token", "%s does not accept the token", req.URL.Host)
	case resp.StatusCode == http.StatusForbidden:
		return wrong("give it the scope write:repository", "the token may not read %s", p.Repository)
	case resp.StatusCode != http.StatusOK:
		return wrong("check that the repository exists and that the token's owner may see it", "%s answered %d for %s", req.URL.Host, resp.StatusCode, p.Repository)
	case json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&r) != nil:
		return wrong("check api_url", "%s does not answer as Gitea does", req.URL.Host)
	case !r.Permissions.Push && !r.Permissions.Admin:
		return wrong("let the token's owner write to the repository", "the token's owner may not write commit statuses in %s", p.Repository)
	}
	return fine("statuses may be written")
}

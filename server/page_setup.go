package server

import (
	"net/url"
	"slices"

	"github.com/labstack/echo/v4"

	"docket/store/ci"
	"docket/web"
)

// GET /setup
func (s *Server) setupPage(c echo.Context) error { return s.show(c, s.fillSetup) }

func (s *Server) fillSetup(v *visit) (web.Page, error) {
	cfg := s.config()
	ch, err := s.chrome(v, "Setup", web.SectionSetup, true)
	if err != nil {
		return nil, err
	}
	base, configured := s.baseURL(v.c)
	p := &web.SetupPage{Chrome: ch, Backups: s.setupBackups(v), NoPublicURL: !configured}
	if p.First, err = s.firstSteps(v.c, cfg); err != nil {
		return nil, err
	}
	if v.may(ci.Operator) {
		paused, err := s.store.Pauses()
		if err != nil {
			return nil, err
		}
		p.Pausable = slices.DeleteFunc(slices.Clone(ci.Works), func(w ci.Work) bool { return paused.Of(w) != nil })
	}
	if err := s.fillRecovery(v, cfg, p); err != nil {
		return nil, err
	}
	refusals := s.refusals.last(keptRefusals)
	for i := range cfg.Integrations {
		in := &cfg.Integrations[i]
		row := setupIntegration(cfg, in, base)
		rec, ok, err := s.store.LatestReceipt(in.Name)
		if err != nil {
			return nil, err
		}
		if ok {
			row.Last = &rec
		}
		for _, r := range refusals {
			if r.Integration == in.Name {
				last := pageRefusal(r)
				row.LastRefusal = &last
				break
			}
		}
		if row.Recovery, err = s.pageRecovery(in); err != nil {
			return nil, err
		}
		p.Integrations = append(p.Integrations, row)
	}
	return p, nil
}

// setupIntegration is what the configuration says of an integration.
func setupIntegration(cfg *ci.Config, in *ci.Integration, base string) web.SetupIntegration {
	row := web.SetupIntegration{
		Name: in.Name, Provider: in.Provider, HookURL: hookURL(base, in.Name), Statuses: in.Reports(),
	}
	for _, secret := range in.WebhookSecrets {
		row.SecretNames = append(row.SecretNames, secret.Name)
	}
	var asked []ci.On
	for i := range cfg.Projects {
		p := &cfg.Projects[i]
		if p.Integration != in.Name {
			continue
		}
		asked = append(asked, p.On)
		hooks := repositoryURL(in, p.Repository)
		if hooks != "" {
			hooks += "/settings/hooks"
		}
		row.Projects = append(row.Projects, web.SetupProject{Name: p.Name, Repository: p.Repository, HooksURL: hooks})
	}
	row.Events = eventsToTick(in.Provider, asked)
	return row
}

// hookURL is the address to paste at a provider.
func hookURL(base, integration string) string { return base + "/hooks/" + url.PathEscape(integration) }

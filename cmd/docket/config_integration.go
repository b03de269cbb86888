package main

import (
	"strings"

	"github.com/goccy/go-yaml/ast"

	"docket/store/ci"
)

// integration reads one provider with its secrets.
func (l *loader) integration(n ast.Node, names *named) (ci.Integration, bool) {
	o := l.object(n, sectionIntegration, "an integration")
	if o == nil || !o.need("name", "github") {
		return ci.Integration{}, false
	}
	in := ci.Integration{Name: o.name("name")}
	if in.Name == "" {
		o.emptyText("name")
		return in, false
	}
	o.what = "the integration " + in.Name
	names.once(l.reader, o.field("name"), in.Name)
	in.Provider = l.provider(o)
	in.APIURL = l.apiURL(o, in.Provider)
	in.WebhookSecrets = l.webhookSecrets(o)
	in.Installations = l.installations(o)
	in.Token = l.secret(o, "token", secretHeader)
	if o.has("app") {
		in.App = l.app(o)
	}
	in.Report = o.oneOf("report")
	in.RecoverEvery = o.interval("recover_every")
	l.fits(o, in)
	return in, true
}

func (l *loader) provider(o *object) string {
	return o.oneOf("provider")
}

// fits reports keys of an integration that do not go together.
func (l *loader) fits(o *object, in ci.Integration) {
	if in.Provider == ci.ProviderGitea {
		for _, key := range []string{"app", "installations"} {
			if o.has(key) {
				l.at(o.fields[key].key, "%s: %s is for GitHub alone; remove it", o.what, key)
			}
		}
	} else if o.has("app") && !o.has("installations") {
		l.at(o.fields["app"].key, "%s has an app and no installations, so it does not know whom it acts for; add `installations: [NUMBER]`, the number at the end of the address of the App's installation", o.what)
	}
	if o.has("app") && o.has("token") {
		l.at(o.fields["token"].key, "%s has both app and token; keep one", o.what)
	}
	if in.Report == ci.ReportChecks && !o.has("app") {
		o.at("report", "%s: report: only a GitHub App may write checks; add `app:`, or write statuses", o.what)
	}
}

// app reads the GitHub App that docket acts as; nil after a fault.
func (l *loader) app(o *object) *ci.App {
	ao := l.object(o.field("app"), sectionApp, o.what+": app")
	if ao == nil {
		return nil
	}
	app := &ci.App{}
	if ao.need("id", "678") {
		app.ID = ao.whole("id")
	}
	if ao.need("private_key", "{file: app.pem}") {
		app.PrivateKey = l.secret(ao, "private_key", secretRSA)
	}
	return app
}

func (l *loader) apiURL(o *object, provider string) string {
	fallback := defaultAPIURL
	if provider == ci.ProviderGitea {
		fallback = ""
	}
	if !o.has("api_url") {
		if provider == ci.ProviderGitea {
			o.need("api_url", "https://gitea.example.org/api/v1/")
		}
		return fallback
	}
	s := o.address("api_url")
	if s == "" {
		return fallback
	}
	if strings.ContainsAny(s, "?#") {
		o.at("api_url", "%s: api_url must end with its path; remove what follows ? or #", o.what)
	}
	return strings.TrimRight(s, "/") + "/"
}

func (l *loader) webhookSecrets(o *object) (list []ci.Secret) {
	if !o.need("webhook_secrets", "[{file: github.secret}]") {
		return nil
	}
	n := l.resolve(o.field("webhook_secrets"))
	if _, one := n.(*ast.MappingNode); one {
		l.at(n, "%s: webhook_secrets must be a list, as there are two while a secret is rotated; put a dash before it", o.what)
		return nil
	}
	if s, isScalar := n.(ast.ScalarNode); isScalar {
		line, _ := position(n)
		l.mask(line, secretText(s))
	}
	nodes := l.list(o.field("webhook_secrets"), o.what+": webhook_secrets")
	if _, isList := n.(*ast.SequenceNode); isList && len(nodes) == 0 {
		o.at("webhook_secrets", "%s has no secret in webhook_secrets; add one, as in [{file: github.secret}]", o.what)
	}
	for _, s := range nodes {
		if secret := l.secretOf(s, o.what+": webhook_secrets", secretBytes); !secret.IsZero() {
			list = append(list, secret)
		}
	}
	return list
}

func (l *loader) installations(o *object) (list []int64) {
	if !o.has("installations") {
		return nil
	}
	seen, k := newNamed("installation"), o.key("installations")
	for _, n := range l.filled(o, "installations", "leaves none; name some, or remove the key") {
		id, ok := l.whole(n, o.what+": an installation", k.low, k.high)
		if !ok {
			continue
		}
		seen.once(l.reader, n, n.GetToken().Value)
		list = append(list, id)
	}
	return list
}

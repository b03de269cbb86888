package main

import (
	"math"
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
	in.APIURL = l.apiURL(o)
	in.WebhookSecrets = l.webhookSecrets(o)
	in.Installations = l.installations(o)
	in.Token = l.secret(o, "token", secretHeader)
	return in, true
}

func (l *loader) provider(o *object) string {
	if o.has("provider") && o.text("provider") == "gitea" {
		o.at("provider", "%s: provider gitea is not supported by this version of docket; use github", o.what)
		return "gitea"
	}
	return o.oneOf("provider", "github", "github")
}

func (l *loader) apiURL(o *object) string {
	if !o.has("api_url") {
		return defaultAPIURL
	}
	s := o.address("api_url")
	if s == "" {
		return defaultAPIURL
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
	seen := newNamed("installation")
	for _, n := range l.list(o.field("installations"), o.what+": installations") {
		id, ok := l.whole(n, o.what+": an installation", 1, math.MaxInt64)
		if !ok {
			continue
		}
		seen.once(l.reader, n, n.GetToken().Value)
		list = append(list, id)
	}
	return list
}

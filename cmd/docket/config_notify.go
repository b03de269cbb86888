package main

import (
	"github.com/goccy/go-yaml/ast"

	"docket/store/ci"
)

// notifies reads who is told about a project's runs.
func (l *loader) notifies(o *object) (list []ci.Notify) {
	if !o.has("notify") {
		return nil
	}
	for _, n := range l.list(o.field("notify"), o.what+": notify") {
		if t, ok := l.notify(n, o.what+": a notify entry"); ok {
			list = append(list, t)
		}
	}
	return list
}

func (l *loader) notify(n ast.Node, what string) (ci.Notify, bool) {
	o := l.object(n, sectionNotify, what)
	if o == nil {
		return ci.Notify{}, false
	}
	if o.has("webhook") == o.has("slack") {
		l.at(o.node, "%s needs exactly one of webhook and slack; write `webhook: https://...` or `slack: {file: PATH}`", what)
		return ci.Notify{}, false
	}
	t := ci.Notify{Events: []string{ci.RunFinished}}
	if o.has("events") {
		t.Events = l.words(o, "events")
	}
	if o.has("slack") {
		l.slack(o, &t)
	} else {
		l.webhook(o, &t)
	}
	return t, true
}

func (l *loader) slack(o *object, t *ci.Notify) {
	t.Kind = ci.OutboxSlack
	t.URL = l.secret(o, "slack", secretAddress)
	t.Target = t.URL.Name
	if o.has("secret") {
		l.at(o.fields["secret"].key, "%s: slack takes no secret, as its address is one; remove it", o.what)
	}
}

func (l *loader) webhook(o *object, t *ci.Notify) {
	t.Kind = ci.OutboxWebhook
	if _, asSecret := l.resolve(o.field("webhook")).(*ast.MappingNode); asSecret {
		o.at("webhook", "%s: webhook must be an address as text, as it is shown in the outbox; what is secret belongs into secret", o.what)
	} else {
		t.Target = o.address("webhook")
		t.URL = ci.NewSecret(t.Target, t.Target)
	}
	if o.need("secret", "{file: notify.secret}") {
		t.Secret = l.secret(o, "secret", secretSigning)
	}
}

package main

import (
	"context"
	"errors"
	"time"

	"docket/dispatcher/forge"
	"docket/scheduler"
	"docket/scheduler/recovery"
	"docket/store/ci"
)

// provider is GitHub as the scheduler asks it.
type provider struct{ forge *forge.Forge }

// Hook implements scheduler.Provider.
func (p provider) Hook(ctx context.Context, project ci.Project, publicURL string) (ci.Hook, bool, error) {
	h, err := p.forge.Hook(ctx, project, publicURL)
	return ci.Hook{App: h.App, Repository: h.Repository, ID: h.ID}, h.Active, limited(err)
}

func hookOf(h ci.Hook) forge.Hook {
	return forge.Hook{App: h.App, Repository: h.Repository, ID: h.ID, Active: true}
}

// Deliveries implements scheduler.Provider.
func (p provider) Deliveries(ctx context.Context, integration string, h ci.Hook, since time.Time, limit int) ([]recovery.Delivery, error) {
	list, err := p.forge.Deliveries(ctx, integration, hookOf(h), since, limit)
	if err != nil {
		return nil, limited(err)
	}
	attempts := make([]recovery.Delivery, len(list))
	for i, d := range list {
		attempts[i] = recovery.Delivery{
			ID: d.ID, GUID: d.GUID, Event: d.Event, Action: d.Action, Status: d.Status, StatusCode: d.StatusCode,
			DeliveredAt: d.DeliveredAt, Redelivery: d.Redelivery, Installation: d.Installation, Repository: d.Repository,
		}
	}
	return attempts, nil
}

// Redeliver implements scheduler.Provider.
func (p provider) Redeliver(ctx context.Context, integration string, h ci.Hook, id int64) error {
	return limited(p.forge.Redeliver(ctx, integration, hookOf(h), id))
}

// Repository implements scheduler.Provider.
func (p provider) Repository(ctx context.Context, project ci.Project) (ci.Repository, error) {
	r, err := p.forge.Repository(ctx, project)
	return r, limited(err)
}

// Heads implements scheduler.Provider.
func (p provider) Heads(ctx context.Context, project ci.Project) ([]ci.Head, error) {
	list, err := p.forge.Heads(ctx, project)
	if err != nil {
		return nil, limited(err)
	}
	heads := make([]ci.Head, len(list))
	for i, h := range list {
		heads[i] = ci.Head{Ref: h.Ref, Commit: h.Commit, Actor: h.Actor, PullRequest: h.PullRequest}
	}
	return heads, nil
}

// Message implements scheduler.Provider.
func (p provider) Message(ctx context.Context, project ci.Project, commit string) (string, error) {
	text, err := p.forge.Message(ctx, project, commit)
	return text, limited(err)
}

// limited puts what the way to GitHub says into the scheduler's words.
func limited(err error) error {
	var limit *forge.LimitError
	var clock *forge.ClockError
	switch {
	case errors.As(err, &limit):
		return &scheduler.RateLimited{Until: limit.Until, Err: limit}
	case errors.As(err, &clock):
		return ci.Wrap(ci.CodeUnavailable, err, "%s", clock.Error())
	}
	return err
}

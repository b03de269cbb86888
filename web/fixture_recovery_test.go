package web_test

import (
	"time"

	"docket/store/ci"
	"docket/web"
)

func missedHeads(w texts, start *web.RunAction) []web.MissedHead {
	at := func(h ci.Head, known string) web.MissedHead {
		return web.MissedHead{Start: start, MissedHead: ci.MissedHead{Project: "api", Head: h, Before: known, SeenAt: before(8 * time.Minute), ListedAt: before(time.Minute)}}
	}
	list := []web.MissedHead{
		at(ci.Head{Ref: "refs/heads/" + w.branch, Commit: commit, Message: w.title + "\n\nmore"}, "1481a2de7b2a7d02428ad93446ab166be7793fbb"),
		at(ci.Head{Ref: "refs/tags/v1.4.0", Commit: commit}, ""),
		at(ci.Head{Ref: "refs/pull/12/head", Commit: commit, PullRequest: &ci.PullRequest{Number: 12, Title: w.title, Head: w.branch, Fork: true}}, ""),
	}
	list[1].Start = nil
	return list
}

func recovered(w texts) web.Recovery {
	return web.Recovery{
		Recovery: ci.Recovery{ComparedAt: before(time.Minute), DeliveriesAt: before(time.Hour), Problem: "GitHub said " + w.reason,
			Last: ci.Round{Asked: 3, Missed: 4, Arrived: 2, NoRun: 1}},
		Missed: []ci.MissedDelivery{
			{Receipt: "github/-/" + w.input, Event: "push", StatusCode: 502, FirstAt: before(time.Hour), Asked: 2},
			{Receipt: "github/-/72d3162e-cc78-11e3-81ab-4c9367dc0958", Event: "pull_request", Action: "opened", Status: w.reason, FirstAt: before(2 * time.Hour), Asked: 1, GaveUp: "docket refused it: " + w.reason},
		},
		More: 7,
	}
}

func gaps() []web.GapRow {
	return []web.GapRow{
		{Gap: ci.Gap{From: before(26 * time.Hour), To: before(25 * time.Hour), Missed: 20, Recovered: 19, GaveUp: 1, ComparedAt: before(time.Hour)}},
		{Gap: ci.Gap{From: before(50 * time.Hour), To: before(50*time.Hour - 4*time.Second), Exact: true, ComparedAt: before(time.Hour)}},
		{Gap: ci.Gap{From: before(51 * time.Hour), To: before(50 * time.Hour)}},
	}
}

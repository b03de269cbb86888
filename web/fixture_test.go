package web_test

import (
	"fmt"
	"strings"
	"time"

	"docket/store/ci"
	"docket/web"
)

// The time at which every fixture is looked at.
func now() time.Time { return time.Date(2026, 3, 4, 12, 30, 0, 0, time.UTC) }

func before(d time.Duration) ci.Time { return ci.At(now().Add(-d)) }

func chrome(title string, section web.Section) web.Chrome {
	return web.Chrome{
		Title: title, Section: section, Now: now(), Path: "/here?x=1", Stream: "/stream",
		User: &web.User{Name: "grace", Role: ci.Operator},
	}
}

// texts are the words that outsiders choose.
type texts struct{ branch, title, actor, step, line, input, reason, repo string }

func friendly() texts {
	return texts{
		branch: "feature/retry-uploads", title: "Retry uploads that time out, and say so in the log", actor: "octocat",
		step: "test", line: "\x1b[32mok\x1b[0m  \tacme/api/upload\t0.412s", input: "staging", reason: "the release is late", repo: "acme/api",
	}
}

func hostile() texts {
	x := `"><script>alert(1)</script><img src=x onerror=alert(2)>'`
	return texts{
		branch: x + "\u202egnp", title: x + strings.Repeat("w", 300), actor: x, step: x,
		line:  x + "\x1b]0;title\x07\x1b]8;;javascript:alert(3)\x07click\x1b]8;;\x07 \x1b[31m" + x + "\x00\x82\x1f\x8b",
		input: x, reason: x + " " + strings.Repeat("long ", 60), repo: x,
	}
}

const commit = "6dcb09b5b57875f334f61aebed695e2e4193db5e"

func run(w texts, n uint64, state ci.State) ci.Run {
	r := ci.Run{
		ID: ci.RunID("api", n), Project: "api", Number: n, State: state, Attempt: 1,
		Cause:     ci.Cause{Kind: ci.CauseDelivery, Receipt: "github/12345/72d3162e-cc78-11e3-81ab-4c9367dc0958", Event: "push", Actor: w.actor},
		Source:    ci.Source{Repository: w.repo, Ref: "refs/heads/" + w.branch, Branch: w.branch, Commit: commit, Before: strings.Repeat("a", 40)},
		Spec:      "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		Inputs:    map[string]string{"target": w.input},
		CreatedAt: before(9 * time.Minute), StartedAt: before(8*time.Minute + 52*time.Second),
		Internal: ci.Internal{Title: w.title},
	}
	zero, one := 0, 1
	at := r.StartedAt
	r.Steps = []ci.StepResult{
		{Name: "lint", State: ci.StepSucceeded, ExitCode: &zero, StartedAt: at, FinishedAt: ci.At(at.Add(12400 * time.Millisecond))},
		{Name: w.step, State: ci.StepSucceeded, ExitCode: &zero, StartedAt: ci.At(at.Add(13 * time.Second)), FinishedAt: ci.At(at.Add(145 * time.Second))},
		{Name: "deploy", State: ci.StepSucceeded, ExitCode: &zero, StartedAt: ci.At(at.Add(146 * time.Second)), FinishedAt: ci.At(at.Add(171 * time.Second))},
	}
	switch state {
	case ci.Failed:
		r.Steps[1].State, r.Steps[1].ExitCode = ci.StepFailed, &one
		r.Steps[2] = ci.StepResult{Name: "deploy", State: ci.StepSkipped}
	case ci.Running:
		r.Steps[1] = ci.StepResult{Name: w.step, State: ci.StepRunning, StartedAt: r.Steps[1].StartedAt}
		r.Steps[2] = ci.StepResult{Name: "deploy", State: ci.StepPending}
	case ci.Queued, ci.Held, ci.Preparing:
		r.Steps, r.StartedAt = nil, ci.Time{}
	case ci.Superseded:
		r.Steps, r.StartedAt, r.SupersededBy = nil, ci.Time{}, "api-99"
		r.Reason = "a newer push"
	case ci.Cancelled:
		r.Reason = w.reason
	case ci.Interrupted:
		r.Reason = "the server stopped while it ran"
	}
	if state.Final() {
		r.FinishedAt = ci.At(r.CreatedAt.Add(3 * time.Minute))
	}
	return r
}

func forkRun(w texts, n uint64, state ci.State) ci.Run {
	r := run(w, n, state)
	r.Fork = true
	r.Cause.Event = "pull_request"
	r.Source.PullRequest = &ci.PullRequest{Number: 128, Title: w.title, Base: "main", Head: w.branch, Fork: true,
		HeadRepo: ci.Repository{ID: 9, FullName: w.actor + "/api"}}
	return r
}

func receipt(w texts, n int, outcome ci.Outcome) ci.Receipt {
	id := ci.ReceiptID{Integration: "github", Installation: "12345", Delivery: fmt.Sprintf("72d3162e-cc78-11e3-81ab-4c9367dc09%02d", n)}
	r := ci.Receipt{
		ID: id.String(), Integration: id.Integration, Installation: id.Installation, Delivery: id.Delivery, Event: "push",
		Outcome: outcome, Repository: ci.Repository{ID: 186853002, FullName: w.repo}, Ref: "refs/heads/" + w.branch, Commit: commit,
		BodySHA256: strings.Repeat("ab", 32), BodyBytes: 7324, Secret: "/etc/docket/github.secret",
		ReceivedAt: before(time.Duration(n)*9*time.Minute + 120*time.Millisecond),
	}
	if outcome == ci.Accepted {
		r.Runs = []string{"api-42"}
	} else {
		r.Reason = `api: branch "` + w.branch + `" matches none of on.push.branches: main, release/**`
	}
	r.Verdicts = []ci.Verdict{{At: r.ReceivedAt, Outcome: outcome, Reason: r.Reason}}
	return r
}

func entry(w texts, n int, state ci.OutboxState) ci.OutboxEntry {
	e := ci.OutboxEntry{
		ID: fmt.Sprintf("01HR3Z5V9QK7M2X8N4B6C0D%03d", n), Kind: ci.OutboxGitHubStatus, Event: "success", Run: "api-42",
		Target: w.repo + "@" + commit[:10] + " docket/api", State: state, Attempts: 1, CreatedAt: before(6 * time.Minute), FinishedAt: before(5 * time.Minute),
	}
	if n%2 == 1 {
		e.Kind, e.Event, e.Target = ci.OutboxWebhook, "run.finished", "https://hooks.example.org/ci"
	}
	switch state {
	case ci.OutboxPending:
		e.FinishedAt, e.NextAttemptAt, e.Attempts = ci.Time{}, ci.At(now().Add(4*time.Minute)), 3
		e.LastError = "hooks.example.org answered 502 Bad Gateway: " + w.reason
		e.Tries = []ci.Try{{At: before(5 * time.Minute), Answer: "no answer within 15s: " + w.reason}, {At: before(time.Minute), Answer: e.LastError}}
	case ci.OutboxDead:
		e.LastError = "GitHub answered 404 Not Found: the token may not write statuses of " + w.repo
	case ci.OutboxSkipped:
		e.Attempts, e.LastError = 0, "api-43 speaks for this commit now"
	}
	return e
}

func decisions(w texts) []ci.Decision {
	return []ci.Decision{
		{ID: "d3", At: before(2 * time.Minute), Kind: ci.DecisionCancelled, Run: "api-41", By: ci.By{Kind: ci.ByUser, Name: w.actor}, Reason: w.reason},
		{ID: "d2", At: before(12 * time.Minute), Kind: ci.DecisionSuperseded, Run: "api-40", OtherRun: "api-42", By: ci.By{Kind: ci.ByScheduler}, Reason: "api-42 is a newer push to main"},
		{ID: "d1", At: before(26 * time.Hour), Kind: ci.DecisionReplayed, Receipt: receipt(w, 3, ci.Ignored).ID, By: ci.By{Kind: ci.ByToken, Name: "admin"}, Reason: "the filter was wrong"},
		{ID: "d0", At: before(40 * 24 * time.Hour), Kind: ci.DecisionPinned, Project: "api", By: ci.By{Kind: ci.ByServer}, Reason: "pinned to repository 186853002 at its first signed delivery"},
	}
}

func history(n int) []web.Bar {
	states := []ci.State{ci.Succeeded, ci.Succeeded, ci.Succeeded, ci.Failed, ci.Succeeded, ci.Superseded, ci.Succeeded, ci.Cancelled, ci.Succeeded, ci.Interrupted}
	var list []web.Bar
	for i := range n {
		b := web.Bar{Run: ci.RunID("api", uint64(i+1)), State: states[i*7%len(states)], At: before(time.Duration(n-i) * time.Hour)}
		if b.State != ci.Superseded {
			b.Duration = time.Duration(60+i*37%110) * time.Second
		}
		list = append(list, b)
	}
	return append(list, web.Bar{Run: "api-99", State: ci.Running, Duration: 70 * time.Second, At: before(time.Minute)})
}

func heads(w texts) []web.Head {
	return []web.Head{
		{Branch: "main", Default: true, Run: "api-42", State: ci.Succeeded, Commit: commit, Title: w.title, At: before(9 * time.Minute)},
		{Branch: w.branch, Run: "api-41", State: ci.Failed, Commit: commit, At: before(time.Hour)},
		{Branch: "release/2.4", Run: "api-37", State: ci.Running, Commit: commit, At: before(3 * time.Hour)},
	}
}

func stepLog(w texts, r ci.Run, lines int, window web.LogWindow) []web.LogStep {
	c := web.NewLogCollector(window)
	var names []string
	for _, s := range r.Steps {
		names = append(names, s.Name)
	}
	at := r.CreatedAt.Time
	c.Write(-1, web.PreparationName, at, true, []byte("workspace at "+commit[:10]+" in 1.2s\n"))
	for i, name := range names {
		if r.Steps[i].State == ci.StepSkipped || r.Steps[i].State == ci.StepPending {
			continue
		}
		c.Write(i, name, at, false, []byte("\x1b[1m$ make "+"all"+"\x1b[0m\n"))
		for k := range lines {
			at = at.Add(137 * time.Millisecond)
			switch k % 9 {
			case 3:
				c.Write(i, name, at, false, []byte("downloading  10%\rdownloading  55%\rdownloading 100%\n"))
			case 5:
				c.Write(i, name, at, false, []byte("\x1b[33mwarning:\x1b[0m \x1b[38;5;208mdeprecated\x1b[0m flag, see \x1b]8;;https://example.org/doc?a=1;b\x07the notes\x1b]8;;\x07 \x1b[97;41m FAIL \x1b[0m\n"))
			case 7:
				c.Write(i, name, at, false, []byte("\n"))
			default:
				c.Write(i, name, at, false, []byte(w.line+"\n"))
			}
		}
		if r.Steps[i].State == ci.StepFailed {
			c.Write(i, name, at, false, []byte("\x1b[31m--- FAIL: TestRetry (0.03s)\x1b[0m\n    upload_test.go:88: got 2 attempts, want 3\n\x1b[31mFAIL\x1b[0m\tacme/api/upload\t1.873s\n"))
			c.Write(i, name, at, true, []byte("ended what the step left in the background: 1 process\n"))
		}
		if r.Steps[i].State == ci.StepRunning {
			c.Write(i, name, at, false, []byte("compiling upload.go "+w.line))
		}
	}
	return c.Steps(names)
}

// faultyFile is a run whose pipeline file has mistakes.
func faultyFile(w texts) ci.Run {
	r := run(w, 45, ci.Failed)
	r.Steps, r.StartedAt, r.Attempt = nil, ci.Time{}, 0
	r.Reason = ".docket.yml:3:5: a step has no key \"rum\"\n  3 |     rum: " + w.input + "\n    |     ^\n.docket.yml:4:5: a step has no run\n  4 |   - {name: a}\n    |     ^"
	return r
}

func runPage(w texts, r ci.Run) *web.RunPage {
	rec := receipt(w, 1, ci.Accepted)
	p := &web.RunPage{
		Chrome: chrome(r.ID, ""), Run: r, Receipt: &rec, RepositoryURL: "https://github.com/acme/api",
		CommitURL: "https://github.com/acme/api/commit/" + commit, RefURL: "https://github.com/acme/api/tree/main",
		Notifications: []ci.OutboxEntry{entry(w, 0, ci.OutboxSent), entry(w, 1, ci.OutboxPending)},
		Decisions:     decisions(w)[:2], RawURL: "/api/v1/runs/" + r.ID + "/logs", Superseded: []string{"api-40", "api-39"},
		Rerun: &web.RunAction{Key: "key-rerun-1"},
	}
	if !r.State.Final() {
		p.Cancel = &web.RunAction{Key: "key-cancel-1"}
	}
	if r.State == ci.Held {
		p.Approve = &web.RunAction{Key: "key-approve-1"}
		p.Waits = []web.Wait{{Text: "It waits for someone's approval: its code comes from a fork."}}
	}
	if r.State == ci.Queued {
		p.Waits = []web.Wait{{Text: "2 runs are ahead of it", Href: "/"}}
	}
	p.Log = stepLog(w, r, 30, web.LogWindow{})
	return p
}

func form(w texts) *web.RunForm {
	return &web.RunForm{
		Action: "/projects/api/runs", Key: "key-form-1", Ref: w.branch,
		Inputs: append(web.NewFormInputs([]ci.Input{{Name: "target", Default: "staging", Options: []string{"staging", "production", w.input}}}),
			web.FormInput{Name: "version", Value: w.input, Default: "latest"}),
	}
}

func refusals(w texts) []web.Refusal {
	return []web.Refusal{
		{At: before(3 * time.Minute), Integration: "github", Reason: "signature", Status: 401, Detail: "the signature does not hold for any configured secret", Event: "push", Delivery: "aa11-bb22", Bytes: 7412, Remote: "140.82.115.7:41022"},
		{At: before(50 * time.Minute), Integration: "github", Reason: "repository", Status: 403, Detail: "no project has the repository " + w.repo, Event: "push", Delivery: "aa11-bb23", Bytes: 812, Remote: "140.82.115.7:41022"},
	}
}

// pages are all pages with words of someone's choosing in them, by name.
func pages(w texts) map[string]web.Page {
	operator := &web.RunAction{Key: "key-1"}
	receipts := []ci.Receipt{receipt(w, 1, ci.Accepted), receipt(w, 2, ci.Ignored), receipt(w, 3, ci.Accepted)}
	dead := entry(w, 2, ci.OutboxDead)
	banners := []web.Banner{{Kind: web.BannerDead, Count: 2}, {Kind: web.BannerHeld, Count: 1}, {Kind: web.BannerDisk, Detail: "812.0 MiB are free; limits.free_space is 1.0 GiB."}}
	paused := []web.Banner{{Kind: web.BannerPaused, Work: ci.WorkRuns, Resume: true, Pause: &ci.Pause{Since: before(time.Hour), By: ci.By{Kind: ci.ByUser, Name: w.actor}, Reason: w.reason}},
		{Kind: web.BannerPaused, Work: ci.WorkOutbox, Pause: &ci.Pause{Since: before(time.Hour), By: ci.By{Kind: ci.ByServer, Name: "restore"}}}}

	overview := &web.Overview{
		Chrome: chrome("Overview", web.SectionOverview),
		Projects: []web.ProjectCard{
			{Name: "api", Repository: w.repo, Heads: heads(w), MoreHeads: 4, History: history(44)},
			{Name: "web-frontend", Repository: "acme/web-frontend", Public: true, Heads: heads(w)[:1], History: history(12)},
			{Name: "tools", Repository: "acme/tools"},
		},
		Running:     web.NewRunRows([]ci.Run{run(w, 44, ci.Running)}),
		Waiting:     web.NewRunRows([]ci.Run{run(w, 45, ci.Queued), forkRun(w, 46, ci.Held), run(w, 47, ci.Preparing)}),
		MoreWaiting: 3,
	}
	overview.Banners = banners
	setup := chrome("Setup", web.SectionSetup)
	setup.Banners = paused
	project := &web.ProjectPage{
		Chrome: chrome("api", ""), Name: "api", Repository: w.repo, RepositoryURL: "https://github.com/acme/api", Integration: "github",
		DefaultBranch: "main", Heads: heads(w), Next: "/projects/api?cursor=abc", Durations: history(70), Form: form(w),
		Runs: web.NewRunRows([]ci.Run{run(w, 44, ci.Running), run(w, 43, ci.Failed), run(w, 42, ci.Succeeded), forkRun(w, 41, ci.Cancelled),
			run(w, 40, ci.Superseded), run(w, 39, ci.Interrupted), run(w, 38, ci.Succeeded)}),
		Missed: missedHeads(w, operator)[:1], Known: &ci.HeadsBase{At: before(50 * time.Hour), Heads: 31},
		Schedules: []web.Schedule{
			{Cron: "30 2 * * 1-5", Timezone: "America/New_York", Branch: w.branch, NextAt: ci.At(now().Add(9 * time.Hour)), Next: "2026-03-05 02:30", LastRun: "api-42"},
			{Cron: "@yearly", Timezone: "UTC", Branch: "main"},
		},
		Badge: web.Badge{ImageURL: "https://ci.example.org/api/v1/projects/api/badge.svg?branch=main", LinkURL: "https://ci.example.org/projects/api"},
	}
	refused := *project
	refused.Form = form(w)
	refused.Form.Open, refused.Form.RefError, refused.Form.CommitError = true, "branch "+w.branch+" is longer than 200 bytes", "a commit is 40 or 64 hex digits"
	refused.Form.Inputs[1].Error = "version holds a NUL"
	refused.Form.Error = "2 fields need another value."
	conflict := *project
	conflict.Form = form(w)
	conflict.Form.Open, conflict.Form.ConflictRun, conflict.Form.NewKey = true, "api-43", "key-form-2"

	large := runPage(w, run(w, 48, ci.Succeeded))
	large.Window = web.LogWindow{Step: w.step, From: 3000}
	large.Log = stepLog(w, large.Run, 6000, large.Window)
	public := runPage(w, run(w, 42, ci.Succeeded))
	public.User, public.Redacted, public.Rerun, public.Notifications, public.Decisions = nil, true, nil, nil, nil

	return map[string]web.Page{
		"overview":          overview,
		"project":           project,
		"project-refused":   &refused,
		"project-conflict":  &conflict,
		"run-running":       runPage(w, run(w, 44, ci.Running)),
		"run-failed":        runPage(w, run(w, 43, ci.Failed)),
		"run-faulty-file":   runPage(w, faultyFile(w)),
		"run-succeeded":     runPage(w, run(w, 42, ci.Succeeded)),
		"run-held":          runPage(w, forkRun(w, 46, ci.Held)),
		"run-queued":        runPage(w, run(w, 45, ci.Queued)),
		"run-superseded":    runPage(w, run(w, 40, ci.Superseded)),
		"run-large":         large,
		"run-public":        public,
		"deliveries":        &web.DeliveriesPage{Chrome: chrome("Deliveries", web.SectionDeliveries), Receipts: receipts, Refusals: refusals(w), RefusalsSince: before(72 * time.Hour), Next: "/deliveries?cursor=x"},
		"deliveries-find":   &web.DeliveriesPage{Chrome: chrome("Deliveries", web.SectionDeliveries), Find: w.reason},
		"delivery-ignored":  &web.DeliveryPage{Chrome: chrome("push", web.SectionDeliveries), Receipt: receipts[1], Header: map[string]string{"X-GitHub-Event": "push", "User-Agent": w.actor}, Body: []byte(`{"ref":"refs/heads/x","head_commit":{"message":` + fmt.Sprintf("%q", w.title) + `}}`), BodyURL: "/api/v1/receipts/x/body", Replay: operator, InForce: inForce(w)},
		"delivery-accepted": &web.DeliveryPage{Chrome: chrome("push", web.SectionDeliveries), Receipt: receipts[0], Runs: web.NewRunRows([]ci.Run{run(w, 42, ci.Succeeded)}), Body: []byte("payload=%7b" + w.title), InForce: &ci.Explanation{Outcome: ci.Refused, Reason: w.reason}},
		"notifications": &web.NotificationsPage{Chrome: chrome("Notifications", web.SectionNotifications), Pending: 1, Dead: 2, Next: "/notifications?cursor=x",
			Holds: []web.Hold{{Key: "github", Until: ci.At(now().Add(7 * time.Minute)), Reason: "GitHub's rate limit"}},
			Entries: []web.EntryRow{{OutboxEntry: dead, Retry: operator, Discard: operator}, {OutboxEntry: entry(w, 1, ci.OutboxPending), Retry: operator, Discard: operator},
				{OutboxEntry: entry(w, 4, ci.OutboxSent)}, {OutboxEntry: entry(w, 5, ci.OutboxSkipped)}}},
		"decisions": &web.DecisionsPage{Chrome: chrome("Decisions", web.SectionDecisions), Decisions: decisions(w), Run: "api-41", Newest: "/decisions"},
		"setup": &web.SetupPage{Chrome: setup, NoPublicURL: true, Pausable: ci.Works, Backups: &web.SetupBackups{Dir: "/var/backups/" + w.branch, Every: 24 * time.Hour, Keep: 7, Last: before(time.Hour), Failed: w.reason}, Missed: missedHeads(w, operator), MoreMissed: 2, Gaps: gaps(), Integrations: []web.SetupIntegration{
			{Name: "github", Provider: "github", HookURL: "https://ci.example.org/hooks/github", SecretNames: []string{"/etc/docket/github.secret"}, Events: []string{"Pushes", "Pull requests"}, Statuses: true,
				Projects: []web.SetupProject{{Name: "api", Repository: w.repo, HooksURL: "https://github.com/acme/api/settings/hooks"}, {Name: "tools", Repository: "acme/tools"}}, Last: &receipts[0], Recovery: recovered(w)},
			{Name: "forge", Provider: "gitea", HookURL: "https://ci.example.org/hooks/forge", SecretNames: []string{"FORGE_SECRET", "FORGE_SECRET_OLD"}, LastRefusal: &refusals(w)[0],
				Recovery: web.Recovery{Why: "Gitea and Forgejo keep no list of deliveries"}},
		}},
		"login": &web.LoginPage{Chrome: web.Chrome{Title: "Sign in"}, Name: w.actor, Next: "/runs/api-42", Error: "too many attempts from your address; try again in 12s, or use a link from `docket login-link`"},
		"link":  &web.LinkPage{Chrome: web.Chrome{Title: "Sign in", Now: now()}, Action: "/login/link", Token: w.input, Name: w.actor, Role: ci.Admin, Expires: ci.At(now().Add(10 * time.Minute))},
		"error": &web.ErrorPage{Chrome: chrome("Not found", ""), Status: 404, Message: "There is no run " + w.branch + ".", ExistingRun: "api-42"},
	}
}

// empty are pages that have nothing to show yet.
func empty() map[string]web.Page {
	first := &web.FirstSteps{HookURL: "https://ci.example.org/hooks/github", Project: "api"}
	signedIn := func(s web.Section) web.Chrome {
		return web.Chrome{Title: "Empty", Section: s, Now: now(), User: &web.User{Name: "ada", Role: ci.Admin}}
	}
	return map[string]web.Page{
		"empty-overview":        &web.Overview{Chrome: signedIn(web.SectionOverview), Setup: first, Projects: []web.ProjectCard{{Name: "api", Repository: "acme/api"}}},
		"empty-overview-public": &web.Overview{Chrome: web.Chrome{Title: "Overview"}},
		"empty-project":         &web.ProjectPage{Chrome: signedIn(""), Name: "api", Repository: "acme/api", Form: &web.RunForm{Action: "/projects/api/runs", Key: "k"}},
		"empty-run":             &web.RunPage{Chrome: signedIn(""), Run: ci.Run{ID: "api-1", Project: "api", Number: 1, State: ci.Preparing, CreatedAt: before(0)}},
		"empty-deliveries":      &web.DeliveriesPage{Chrome: signedIn(web.SectionDeliveries)},
		"empty-delivery":        &web.DeliveryPage{Chrome: signedIn(web.SectionDeliveries)},
		"empty-notifications":   &web.NotificationsPage{Chrome: signedIn(web.SectionNotifications)},
		"empty-decisions":       &web.DecisionsPage{Chrome: signedIn(web.SectionDecisions)},
		"empty-setup":           &web.SetupPage{Chrome: signedIn(web.SectionSetup), First: first},
		"empty-login":           &web.LoginPage{},
		"empty-link":            &web.LinkPage{Action: "/login/link"},
		"empty-error":           &web.ErrorPage{Status: 500, Message: "docket itself has failed"},
	}
}

// inForce is what two projects make of a delivery now.
func inForce(w texts) *ci.Explanation {
	return &ci.Explanation{Outcome: ci.Accepted, Projects: []ci.Ruling{
		{Project: "api", Matches: true, Reason: w.reason, Run: &ci.Planned{State: ci.Preparing, Held: true, Context: "docket/api/pr", Ref: "refs/heads/" + w.branch, Steps: []string{w.title}, Scope: w.branch, Group: w.branch}},
		{Project: "web", Reason: w.reason, Undecided: true, Cancels: w.title, Reruns: w.title},
	}}
}

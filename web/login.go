package web

import (
	"time"

	"docket/store/ci"
)

// LoginPage is the page at /login. It posts "name", "password" and "next" there.
type LoginPage struct {
	Chrome
	Name string // as typed
	Next string // path to go to afterwards
	// Error says why it did not work, in one sentence.
	Error string
	// RetryAfter is how long to wait before the next try counts, 0 for now.
	RetryAfter time.Duration
}

func (*LoginPage) template() string { return "login" }

// LinkPage asks someone who followed a one-time link to confirm: programs
// that look at links do not use it up. It posts "token" and "next" to Action.
type LinkPage struct {
	Chrome
	Action  string
	Token   string
	Name    string // who will be signed in
	Role    ci.Role
	Expires ci.Time
	Next    string
}

func (*LinkPage) template() string { return "link" }

// RetryText is how long to wait, "" for not at all.
func (p *LoginPage) RetryText() string {
	if p.RetryAfter <= 0 {
		return ""
	}
	return durationText(p.RetryAfter.Round(time.Second))
}

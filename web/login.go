package web

import "docket/store/ci"

// LoginPage is the page at /login. It posts "name", "password" and "next" there.
type LoginPage struct {
	Chrome
	Name string // as typed
	Next string // path to go to afterwards
	// Error says why it did not work, in one sentence.
	Error string
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

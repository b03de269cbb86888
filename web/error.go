package web

// ErrorPage says what happened and what to do.
type ErrorPage struct {
	Chrome
	Status  int
	Message string // one sentence, as in the API's detail
	// ExistingRun is the run that holds the key of a conflicting request.
	ExistingRun string
	// Back is where to go, "" for the overview.
	Back string
	// SignIn is the path of the login page with next, where signing in would help.
	SignIn string
}

func (*ErrorPage) template() string { return "error" }

// Heading says in a few words what happened.
func (p *ErrorPage) Heading() string {
	switch p.Status {
	case 400, 422:
		return "That cannot be read like this"
	case 401:
		return "Please sign in"
	case 403:
		return "Not allowed"
	case 404:
		return "Nothing here"
	case 405:
		return "Not this way"
	case 409:
		return "Something else is in the way"
	case 413:
		return "Too much"
	case 429:
		return "Too often"
	case 503:
		return "Not now"
	}
	return "Something broke"
}

// Todo says what to do.
func (p *ErrorPage) Todo() string {
	switch p.Status {
	case 400, 405, 413, 422:
		return "Go back, change what was sent, and send it again."
	case 401:
		return "Your session may have ended; nothing was changed."
	case 403:
		return "Someone with a higher role can do it, or give you one."
	case 404:
		return "The address may be mistyped, or what it named has been pruned, or it is not for you to see."
	case 409:
		return "Nothing was changed. Look at the present state, then decide again."
	case 429:
		return "Wait a little, then try once more."
	case 503:
		return "Nothing was promised and nothing was changed. Try again in a moment; if it stays so, /readyz and the server's log say why."
	}
	return "It is a fault of docket's own and stands in its log. Nothing says that it was done: look before you repeat it."
}

package server

import (
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"
)

// MaxLoginForm is the bound of the forms for signing in, in bytes.
const MaxLoginForm = maxLoginForm

// PostForm reads a form as the sign-in does.
func PostForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	return postForm(echo.New().NewContext(r, w), maxLoginForm)
}

// LogPosition reads an event id of a followed log, and writes it again.
func LogPosition(s string) (attempt int, offset int64, text string) {
	p := parsePosition(s)
	return p.attempt, p.offset, p.String()
}

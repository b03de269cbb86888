package server

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"docket/store/ci"
)

// maxLoginForm bounds the forms for signing in and out, in bytes.
const maxLoginForm = 16 << 10

// postForm reads the fields of a form; no body is an empty form. What stands in
// the address is no field.
//
// Errors: CodeUnsupportedMedia, CodeTooLarge, CodeMalformed.
func postForm(c echo.Context, limit int64) (url.Values, error) {
	r := c.Request()
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), r.Body, limit))
	if err != nil {
		var over *http.MaxBytesError
		if errors.As(err, &over) {
			return nil, ci.Errorf(ci.CodeTooLarge, "the form is larger than %d bytes; send less", limit)
		}
		return nil, ci.Wrap(ci.CodeMalformed, err, "the form could not be read to its end; send it again")
	}
	if len(body) == 0 {
		return url.Values{}, nil
	}
	if t, _, err := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType)); err != nil || t != echo.MIMEApplicationForm {
		return nil, ci.Errorf(ci.CodeUnsupportedMedia, "a form must come with `Content-Type: application/x-www-form-urlencoded`")
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, ci.Wrap(ci.CodeMalformed, err, "the form is not well encoded; send it again from its page")
	}
	return form, nil
}

package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"docket/store"
	"docket/store/ci"
)

// maxAPIBody bounds the body of an API request, in bytes.
const maxAPIBody = 1 << 20

// pathParam returns a path parameter as it was before percent-encoding.
func pathParam(c echo.Context, name string) string {
	v := c.Param(name)
	if u, err := url.PathUnescape(v); err == nil {
		return u
	}
	return v // cannot be: the path came from URL.EscapedPath
}

// page reads limit and cursor of a listing.
func page(c echo.Context) (store.Page, error) {
	p := store.Page{Limit: 50, Cursor: c.QueryParam("cursor")}
	if v, ok := query(c, "limit"); ok {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > 200 {
			return p, ci.Errorf(ci.CodeInvalid, "limit is %q; want a number from 1 to 200", v)
		}
		p.Limit = n
	}
	return p, nil
}

// query returns a query parameter and whether it was given.
func query(c echo.Context, name string) (string, bool) {
	v, ok := c.QueryParams()[name]
	if !ok || len(v) == 0 {
		return "", false
	}
	return v[0], true
}

// oneOf reads a query parameter that has a fixed set of values; "" means all.
func oneOf[T ~string](c echo.Context, name string, values []T) (T, error) {
	v := T(c.QueryParam(name))
	if v == "" || slices.Contains(values, v) {
		return v, nil
	}
	return "", ci.Errorf(ci.CodeInvalid, "%s is %q; want one of %s", name, v, join(values))
}

func join[T ~string](values []T) string {
	s := make([]string, len(values))
	for i, v := range values {
		s[i] = string(v)
	}
	return strings.Join(s, ", ")
}

// listing writes one page: the list under its noun, and where the next begins.
func listing[T any](c echo.Context, noun string, list []T, next string) error {
	if list == nil {
		list = []T{}
	}
	return c.JSON(http.StatusOK, map[string]any{noun: list, "next_cursor": next})
}

const headerKey = "Idempotency-Key"

// idempotencyKey returns the request's key. Without one it is CodeMalformed
// where one is needed, else "".
func idempotencyKey(c echo.Context, needed bool) (string, error) {
	given := c.Request().Header.Values(headerKey)
	if len(given) == 0 && !needed {
		return "", nil
	}
	if len(given) != 1 || !ci.PrintableKey(given[0]) {
		return "", ci.Errorf(ci.CodeMalformed, "this needs one %s header of 1 to 255 printable ASCII characters: a new one for each thing you want, the same one to ask again", headerKey)
	}
	return given[0], nil
}

// replayed marks an answer that was given before under the same key.
func replayed(c echo.Context, was bool) {
	if was {
		c.Response().Header().Set("Idempotency-Replayed", "true")
	}
}

// decode reads a JSON object into v, a pointer to a struct, and takes only
// members that the struct names exactly. No body is an empty object.
//
// Errors: CodeUnsupportedMedia, CodeTooLarge, CodeMalformed (not JSON),
// CodeInvalid (JSON, but not what was asked for).
func decode(c echo.Context, v any) error {
	r := c.Request()
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), r.Body, maxAPIBody))
	if err != nil {
		var over *http.MaxBytesError
		if errors.As(err, &over) {
			return ci.Errorf(ci.CodeTooLarge, "the body is larger than %d bytes", maxAPIBody)
		}
		return ci.Wrap(ci.CodeMalformed, err, "the body could not be read to its end")
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	if t, _, err := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType)); err != nil || t != echo.MIMEApplicationJSON {
		return ci.Errorf(ci.CodeUnsupportedMedia, "the body must come with `Content-Type: application/json`")
	}
	if enc := r.Header.Get(echo.HeaderContentEncoding); enc != "" && !strings.EqualFold(enc, "identity") {
		return ci.Errorf(ci.CodeUnsupportedMedia, "the body is encoded as %q; send it as it is", enc)
	}
	return decodeStrict(body, v)
}

func decodeStrict(body []byte, v any) error {
	if !utf8.Valid(body) {
		return ci.Errorf(ci.CodeMalformed, "the body is not UTF-8")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return ci.Errorf(ci.CodeInvalid, "the body is JSON, but not an object")
		}
		return ci.Wrap(ci.CodeMalformed, err, "the body is not well-formed JSON: %v", err)
	}
	if members == nil {
		return ci.Errorf(ci.CodeInvalid, "the body is JSON, but not an object")
	}
	known := memberNames(reflect.TypeOf(v).Elem())
	for name := range members {
		if !slices.Contains(known, name) {
			return ci.Errorf(ci.CodeInvalid, "the body has an unknown field %q; known here: %s", name, strings.Join(known, ", "))
		}
	}
	if err := json.Unmarshal(body, v); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return ci.Wrap(ci.CodeInvalid, err, "the field %q is a %s; want a %s", wrong.Field, wrong.Value, jsonType(wrong.Type))
		}
		return ci.Wrap(ci.CodeInvalid, err, "the body does not fit: %v", err)
	}
	return nil
}

// memberNames returns the JSON names of a struct's fields.
func memberNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Map, reflect.Struct:
		return "object"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64:
		return "whole number"
	}
	return fmt.Sprint(t)
}

package server

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"docket/store/ci"
)

// GET /projects/{project}/badge.svg: how a branch stands, as a picture. It
// needs no token where the project is public.
func (s *Server) badge(c echo.Context) error {
	p := s.config().Project(pathParam(c, "project"))
	if p == nil {
		return noProject(pathParam(c, "project"))
	}
	branch := c.QueryParam("branch")
	if branch == "" {
		branch = p.DefaultBranch
	}
	text, colour := "no runs", "#9f9f9f"
	head, err := s.store.HeadOf(p.Name, branch)
	switch {
	case err == nil:
		text, colour = badgeText(head.State)
	case ci.CodeOf(err) != ci.CodeNotFound:
		return err
	}
	h := c.Response().Header()
	h.Set(echo.HeaderCacheControl, "no-cache")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	return c.Blob(http.StatusOK, "image/svg+xml; charset=utf-8", drawBadge(p.Name, text, colour))
}

func badgeText(s ci.State) (text, colour string) {
	switch s {
	case ci.Succeeded:
		return "passing", "#2f8f3e"
	case ci.Failed:
		return "failing", "#c6372c"
	case ci.Interrupted:
		return string(s), "#c6372c"
	case ci.Running, ci.Queued, ci.Preparing, ci.Held:
		return string(s), "#b07d00"
	}
	return string(s), "#6f6f6f"
}

// drawBadge draws two boxes with a text in each. What is in the texts cannot
// end them.
func drawBadge(left, right, colour string) []byte {
	a, b := textWidth(left), textWidth(right)
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="20" role="img" aria-label="%[6]s: %[7]s">`+
		`<title>%[6]s: %[7]s</title>`+
		`<rect width="%[1]d" height="20" rx="3" fill="#444"/>`+
		`<rect x="%[2]d" width="%[3]d" height="20" rx="3" fill="%[8]s"/>`+
		`<rect x="%[2]d" width="4" height="20" fill="%[8]s"/>`+
		`<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">`+
		`<text x="%[4]d" y="14">%[6]s</text><text x="%[5]d" y="14">%[7]s</text></g></svg>`+"\n",
		a+b, a, b, a/2, a+b/2, escapeXML(left), escapeXML(right), colour)
}

// textWidth is about how wide a text is at 11 pixels, with room at its ends.
func textWidth(s string) int { return 7*utf8.RuneCountInString(s) + 12 }

func escapeXML(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}

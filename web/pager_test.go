package web_test

import (
	"strings"
	"testing"

	"docket/web"
)

// Ensure that a list of which nothing matches yet still leads to what is older.
func TestEmptyListLeadsOn(t *testing.T) {
	r := web.New("test")
	for name, page := range map[string]web.Page{
		"project":       &web.ProjectPage{Name: "api", Branch: "none", Next: "/older", Newest: "/newest"},
		"deliveries":    &web.DeliveriesPage{Outcome: "ignored", Next: "/older", Newest: "/newest"},
		"notifications": &web.NotificationsPage{State: "dead", Next: "/older", Newest: "/newest"},
		"decisions":     &web.DecisionsPage{Run: "api-1", Next: "/older", Newest: "/newest"},
	} {
		var b strings.Builder
		if err := r.Render(&b, page); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`href="/older" rel="next">Older<`, `href="/newest">Newest<`, "older ones may."} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s has no %s", name, want)
			}
		}
	}
}

package ci_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"docket/store/ci"
)

// Ensure that no way of printing a secret, alone or inside something else,
// shows its value.
func TestSecret_NeverPrints(t *testing.T) {
	const value = "hunter2-hunter2"
	s := ci.NewSecret("/etc/docket/github.secret", value)
	project := ci.Project{Name: "api", Secrets: map[string]ci.Secret{"NPM_TOKEN": s}, Notify: []ci.Notify{{URL: s, Secret: s}}}
	config := ci.Config{AdminToken: s, Integrations: []ci.Integration{{WebhookSecrets: []ci.Secret{s}, Token: s}}, Projects: []ci.Project{project}}
	shapes := map[string]any{
		"a value": s, "a pointer": &s, "a list": []ci.Secret{s}, "a map": map[string]ci.Secret{"x": s},
		"a project": project, "a configuration": &config, "an interface in a list": []any{s, &s},
		"an unexported field": struct{ s ci.Secret }{s}, "a pointer in a field": struct{ S *ci.Secret }{&s},
	}
	hide := []string{value, hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value))), fmt.Sprint([]byte(value)), fmt.Sprintf("%#v", []byte(value))}
	check := func(how, out string) {
		t.Helper()
		for _, h := range hide {
			if strings.Contains(out, h) {
				t.Errorf("%s shows it: %s", how, out)
			}
		}
	}
	for what, v := range shapes {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%#x", "%d", "%t"} {
			check(what+" with "+verb, fmt.Sprintf(verb, v))
		}
		check(what+" with Sprint", fmt.Sprint(v))
		b, err := json.Marshal(v)
		if err == nil {
			check(what+" as JSON", string(b))
		}
		var buf bytes.Buffer
		slog.New(slog.NewTextHandler(&buf, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&buf, nil)).Info("x", "v", v)
		check(what+" with slog", buf.String())
	}
	check("an error", fmt.Errorf("bad: %w / %v", fmt.Errorf("%v", s), &s).Error())
	if s.String() != ci.Mask || s.Reveal() != value || s.Name == "" {
		t.Fatal("the value is for Reveal alone")
	}
}

func TestSecret_Equal(t *testing.T) {
	s := ci.NewSecret("n", "abc")
	for v, want := range map[string]bool{"abc": true, "abd": false, "ab": false, "abcd": false, "": false} {
		if s.Equal(v) != want {
			t.Errorf("%q: %v", v, !want)
		}
	}
	if s.IsZero() || !(ci.Secret{Name: "n"}).IsZero() {
		t.Error("a secret without a value is zero")
	}
}

package main

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"docket/dispatcher/forge/forgetest"
)

// doctorRig is a docket that is not running, with a fake GitHub.
type doctorRig struct {
	*world
	hub    *forgetest.GitHub
	config obj
}

// newDoctorRig makes one that signs in as the App, or with a token.
func newDoctorRig(t *testing.T, app bool) *doctorRig {
	t.Helper()
	r := &doctorRig{world: newWorld(t), hub: forgetest.New(t)}
	r.hub.AddRepository("acme/api", 7)
	r.hub.KnowCommits("acme/api", strings.Repeat("a", 40))
	r.write("hook.secret", "x")
	in := obj{"name": "github", "webhook_secrets": []obj{{"file": "hook.secret"}}, "api_url": r.hub.API()}
	if app {
		r.write("app.pem", r.hub.PrivateKey())
		in["app"], in["installations"] = obj{"id": forgetest.AppID, "private_key": obj{"file": "app.pem"}}, []int64{forgetest.Installation}
	} else {
		r.hub.AddToken("ghp_good")
		r.write("token", "ghp_good")
		in["token"] = obj{"file": "token"}
	}
	r.config = obj{
		"data_dir": "data", "public_url": "http://docket.test", "limits": obj{"free_space": 1 << 20},
		"integrations": []obj{in},
		"projects": []obj{{
			"name": "api", "integration": "github", "repository": "acme/api", "clone_url": r.hub.CloneURL("acme/api"),
			"steps": []obj{step("a", "true")},
		}},
	}
	r.hub.SetAppHook(forgetest.Hook{URL: "http://docket.test/hooks/github", Secret: "x"})
	if !app {
		r.hub.AddHook(forgetest.Hook{Repository: "acme/api", URL: "http://docket.test/hooks/github", Secret: "x", Active: true})
	}
	return r
}

// examine runs docket doctor and returns what it found, by the check's name.
func (r *doctorRig) examine() (code int, found map[string][]finding) {
	r.t.Helper()
	r.write("docket.yaml", string(mustMarshal(r.t, r.config)))
	res := r.run("doctor", "-c", r.path("docket.yaml"), "-o", "json")
	return res.code, findingsOf(r.t, res.out)
}

func findingsOf(t *testing.T, out string) map[string][]finding {
	t.Helper()
	var list struct{ Checks []finding }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	found := map[string][]finding{}
	for _, f := range list.Checks {
		if f.Says == "" || f.State == stateWrong && f.Mend == "" && !strings.Contains(f.Says, ";") {
			t.Errorf("%+v does not say what to do", f)
		}
		found[f.Check] = append(found[f.Check], f)
	}
	return found
}

// mustFind wants a finding of a state whose text has all of parts.
func mustFind(t *testing.T, found map[string][]finding, check, state string, parts ...string) {
	t.Helper()
	for _, f := range found[check] {
		text, ok := f.Says+"; "+f.Mend, f.State == state
		for _, p := range parts {
			ok = ok && strings.Contains(text, p)
		}
		if ok {
			return
		}
	}
	t.Errorf("%s: want %s with %q, have %+v", check, state, parts, found[check])
}

// Ensure that with nothing wrong nothing is, as an App and with a token, and
// that nothing was written at GitHub.
func TestDoctorFindsNothingWrong(t *testing.T) {
	for name, app := range map[string]bool{"app": true, "token": false} {
		t.Run(name, func(t *testing.T) {
			r := newDoctorRig(t, app)
			code, found := r.examine()
			if code != exitDone {
				t.Errorf("exit code %d: %+v", code, found)
			}
			mustFind(t, found, "configuration", stateOK, "is sound")
			mustFind(t, found, "data directory", stateWarning, "is not there yet")
			mustFind(t, found, "git", stateOK, "git version")
			mustFind(t, found, "sh", stateOK)
			mustFind(t, found, "server", stateWarning, "no server runs")
			mustFind(t, found, "clock of github", stateOK, "0 s")
			mustFind(t, found, "integration github", stateOK, "acme/api")
			if list := r.hub.Statuses(strings.Repeat("0", 40), "docket"); len(list) > 0 {
				t.Errorf("statuses were written: %+v", list)
			}
		})
	}
}

// Ensure that a permission that is missing is named.
func TestDoctorNamesMissingPermissions(t *testing.T) {
	r := newDoctorRig(t, true)
	r.hub.Permit(forgetest.Installation, map[string]string{"metadata": "read", "contents": "read", "pull_requests": "read"})
	code, found := r.examine()
	if code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	mustFind(t, found, "integration github", stateWrong, "Commit statuses: read and write", "acme/api")

	r = newDoctorRig(t, false)
	r.hub.Script("GET /repos/acme/api/hooks", forgetest.Message(http.StatusForbidden, "Resource not accessible by personal access token"))
	_, found = r.examine()
	mustFind(t, found, "integration github", stateWrong, "Webhooks: read and write")

	r = newDoctorRig(t, false)
	r.hub.Script("POST /repos/acme/api/statuses", forgetest.Message(http.StatusForbidden, "Resource not accessible by personal access token"))
	_, found = r.examine()
	mustFind(t, found, "integration github", stateWrong, "Commit statuses: read and write")

	r.write("token", "ghp_bad")
	_, found = r.examine()
	mustFind(t, found, "integration github", stateWrong, "401")
}

// Ensure that a webhook that is switched off or lacking is told.
func TestDoctorLooksAtTheHook(t *testing.T) {
	r := newDoctorRig(t, false)
	r.config["public_url"] = "http://other.test"
	_, found := r.examine()
	mustFind(t, found, "integration github", stateWrong, "no webhook of acme/api has the address http://other.test/hooks/github")
	r.hub.SwitchHook(r.hub.AddHook(forgetest.Hook{Repository: "acme/api", URL: "http://other.test/hooks/github", Secret: "x"}), false)
	_, found = r.examine()
	mustFind(t, found, "integration github", stateWrong, "switched off")
}

// Ensure that a clock that is off is told, with how far and which way.
func TestDoctorLooksAtTheClock(t *testing.T) {
	for _, c := range []struct {
		skew  time.Duration
		state string
		says  string
	}{
		{-10 * time.Minute, stateWrong, "s ahead of"},
		{10 * time.Minute, stateWrong, "s behind"},
		{20 * time.Second, stateWarning, "s behind"},
	} {
		r := newDoctorRig(t, false)
		r.hub.Skew(c.skew)
		_, found := r.examine()
		mustFind(t, found, "clock of github", c.state, c.says)
	}
}

// Ensure that what never answers ends within the time, and is told apart from
// what does.
func TestDoctorEndsInABlackHole(t *testing.T) {
	t.Parallel()
	r := newDoctorRig(t, true)
	hole := blackHole(t)
	r.config["integrations"].([]obj)[0]["api_url"] = "http://" + hole + "/"
	r.write("notify.secret", "x")
	var sent int
	quiet := newQuietReceiver(t, &sent)
	r.config["projects"].([]obj)[0]["notify"] = []obj{
		{"webhook": "https://" + hole + "/x", "secret": obj{"file": "notify.secret"}, "events": []string{"run.finished"}},
		{"webhook": quiet, "secret": obj{"file": "notify.secret"}, "events": []string{"run.finished"}},
	}
	began := time.Now()
	code, found := r.examine()
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %s", took)
	}
	if code != exitFailed || sent > 0 {
		t.Errorf("exit code %d, %d requests sent", code, sent)
	}
	mustFind(t, found, "clock of github", stateWrong, "cannot be reached")
	mustFind(t, found, "integration github", stateWrong)
	mustFind(t, found, "receiver https://"+hole, stateWrong, "does not answer in time")
	mustFind(t, found, "receiver "+quiet, stateOK)
}

// Ensure that a backup that is overdue or cannot be made is told.
func TestDoctorLooksAtBackups(t *testing.T) {
	r := newDoctorRig(t, false)
	r.config["backup"] = obj{"dir": "none"}
	_, found := r.examine()
	mustFind(t, found, "backup", stateWrong, "cannot be looked at")
	r.config["backup"] = obj{"dir": "."}
	_, found = r.examine()
	mustFind(t, found, "backup", stateWarning, "no backup")
	for _, c := range []struct {
		age   time.Duration
		state string
	}{{72 * time.Hour, stateWrong}, {time.Hour, stateOK}} {
		r.write(backupPrefix+time.Now().Add(-c.age).UTC().Format(backupTime)+backupSuffix, "x")
		_, found = r.examine()
		mustFind(t, found, "backup", c.state, "the newest backup is")
	}
}

// Ensure that a broken configuration is told, and the rest that can be.
func TestDoctorTellsABrokenConfiguration(t *testing.T) {
	r := newDoctorRig(t, false)
	r.config["data_dri"] = "x"
	code, found := r.examine()
	if code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	mustFind(t, found, "configuration", stateWrong, "data_dri")
	mustFind(t, found, "data directory", stateWarning, "not there yet")
}

// Ensure that a secret is named that every user of the machine can read.
func TestDoctorLooksWhoCanReadSecrets(t *testing.T) {
	r := newDoctorRig(t, false)
	_, found := r.examine()
	mustFind(t, found, "secrets", stateOK, "nobody but their owners")
	for mode, want := range map[os.FileMode]string{0o640: stateOK, 0o644: stateWarning, 0o602: stateWarning} {
		if err := os.Chmod(r.path("token"), mode); err != nil {
			t.Fatal(err)
		}
		_, found := r.examine()
		text := "nobody but"
		if want == stateWarning {
			text = "token has mode 0" + strconv.FormatUint(uint64(mode), 8)
		}
		mustFind(t, found, "secrets", want, text)
		if len(found["secrets"]) != 1 {
			t.Errorf("%04o: %+v", mode, found["secrets"])
		}
	}
}

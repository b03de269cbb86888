package forge_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"docket/dispatcher/forge"
	"docket/dispatcher/forge/forgetest"
	"docket/store/ci"
)

// Ensure that a clock that is a little off keeps nobody out.
func TestAnAppSignsInWithAClockThatIsALittleOff(t *testing.T) {
	for _, off := range []time.Duration{-40 * time.Second, 0, 5 * time.Second, 40 * time.Second} {
		t.Run(off.String(), func(t *testing.T) {
			r := newRig(t)
			r.off.Store(int64(off))
			r.mustSay(access())
			r.mustSay(access())
			if n := r.minted(); n != 1 {
				t.Errorf("%d tokens were asked for, want 1", n)
			}
		})
	}
}

// Ensure that a clock that is too far off is told as what it is.
func TestAClockThatIsOffIsSaid(t *testing.T) {
	for off, want := range map[time.Duration]string{
		95 * time.Second:  "this machine's clock is 95 s ahead of GitHub's; set it by NTP",
		-20 * time.Minute: "this machine's clock is 1200 s behind GitHub's; set it by NTP",
	} {
		r := newRig(t)
		r.off.Store(int64(off))
		_, err := r.say(access())
		var clock *forge.ClockError
		if !errors.As(err, &clock) {
			t.Fatalf("%s off: %v", off, err)
		}
		// The comparison is by a header of whole seconds.
		if (clock.Ahead - off).Abs() > 2*time.Second {
			t.Errorf("%s off is told as %s", off, clock.Ahead)
		}
		clock.Ahead = off
		if got := clock.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Ensure that a wrong key is not taken for a wrong clock.
func TestAWrongKeyIsNoClock(t *testing.T) {
	r := newRig(t)
	r.hub.Script("POST /app/installations/", forgetest.Message(401, "A JSON web token could not be decoded"))
	_, err := r.say(access())
	var answer *forge.AnswerError
	if !errors.As(err, &answer) || answer.Status != 401 {
		t.Fatalf("%v", err)
	}
	r.config.Integrations[0].App = &ci.App{ID: forgetest.AppID, PrivateKey: ci.NewSecret("app.pem", "no key")}
	if _, err := r.say(access()); ci.CodeOf(err) != ci.CodeInvalid || !strings.Contains(err.Error(), "app.pem") || strings.Contains(err.Error(), "no key") {
		t.Errorf("%v", err)
	}
}

func TestATokenIsRenewedBeforeItsEnd(t *testing.T) {
	r := newRig(t)
	r.mustSay(access())
	r.pass(54 * time.Minute)
	r.mustSay(access())
	if n := r.minted(); n != 1 {
		t.Fatalf("%d tokens were asked for, want 1", n)
	}
	r.pass(2 * time.Minute)
	r.mustSay(access())
	if n := r.minted(); n != 2 {
		t.Errorf("%d tokens were asked for, want 2", n)
	}
}

// Ensure that a token's end is read by GitHub's clock: with a clock that is
// behind by 40 s it would be used for 40 s too long.
func TestATokensEndIsToldByGitHubsClock(t *testing.T) {
	r := newRig(t)
	r.off.Store(int64(-40 * time.Second))
	r.hub.TokenLifetime(5*time.Minute + 20*time.Second)
	r.mustSay(access())
	r.off.Add(int64(30 * time.Second))
	r.hub.Skew(30 * time.Second)
	r.mustSay(access())
	if n := r.minted(); n != 2 {
		t.Errorf("%d tokens were asked for, want 2", n)
	}
}

func TestATokenThatIsRefusedIsRenewedOnce(t *testing.T) {
	r := newRig(t)
	r.mustSay(access())
	r.hub.RevokeTokens()
	r.mustSay(access())
	if n := r.minted(); n != 2 {
		t.Fatalf("%d tokens were asked for, want 2", n)
	}
	no := forgetest.Message(401, "Bad credentials")
	r.hub.Script("POST /repos/", no, no, no)
	resp, err := r.say(access())
	if err == nil || resp.StatusCode != http.StatusUnauthorized {
		t.Fatalf("%v", err)
	}
	if n := len(r.hub.Calls("POST /repos/")); n != 1+2+2 {
		t.Errorf("%d calls, want 5: a refusal is tried again once", n)
	}
}

// Ensure that many who find no token ask for one, once, and that it is the
// same again when it expires under all of them.
func TestManyAskForOneToken(t *testing.T) {
	r := newRig(t)
	for round := 1; round <= 3; round++ {
		var wg sync.WaitGroup
		errs := make(chan error, 20)
		for range cap(errs) {
			wg.Go(func() {
				_, err := r.say(access())
				errs <- err
			})
		}
		wg.Wait()
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if n := r.minted(); n != round {
			t.Fatalf("round %d: %d tokens were asked for", round, n)
		}
		if round == 1 {
			r.pass(time.Hour)
		} else {
			r.hub.RevokeTokens()
		}
	}
}

// Ensure that who waits for another one's token can leave.
func TestWhoWaitsForATokenCanLeave(t *testing.T) {
	r := newRig(t)
	r.hub.Script("POST /app/installations/", forgetest.Answer{Hang: true})
	first, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, _, err := r.Credential(first, r.project(), r.project().CloneURL, "")
		ended <- err
	}()
	for deadline := time.Now().Add(10 * time.Second); r.minted() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no token was asked for")
		}
	}
	second, leave := context.WithCancel(t.Context())
	leave()
	if _, _, err := r.Credential(second, r.project(), r.project().CloneURL, ""); err == nil {
		t.Error("the second got a token")
	}
	stop()
	if err := <-ended; err == nil {
		t.Error("the first got a token")
	}
	if _, _, err := r.Credential(t.Context(), r.project(), r.project().CloneURL, ""); err != nil {
		t.Error(err)
	}
}

// Ensure that with GitHub giving no tokens an old one does while it is good,
// and that it is an error that passes when there is none.
func TestTheTokenEndpointIsDown(t *testing.T) {
	r := newRig(t)
	down := forgetest.Message(503, "down")
	r.hub.Script("POST /app/installations/", down)
	_, err := r.say(access())
	var answer *forge.AnswerError
	if !errors.As(err, &answer) || answer.Status != 503 {
		t.Fatalf("%v", err)
	}
	r.mustSay(access())
	r.pass(57 * time.Minute)
	r.hub.Script("POST /app/installations/", down)
	r.mustSay(access())
	r.pass(2*time.Minute + 45*time.Second)
	r.hub.Script("POST /app/installations/", down)
	if _, err := r.say(access()); err == nil {
		t.Error("a token of 15 s was used")
	}
}

// Ensure that a token may do what is needed and nothing else, and is good for
// one repository where that is asked for.
func TestATokenMayDoNoMoreThanNeeded(t *testing.T) {
	r := newRig(t)
	r.hub.AddRepository("acme/other", 8)
	if _, err := r.say(forge.Access{Integration: "github", Repository: "acme/api", Need: forge.Contents}); err == nil || !strings.Contains(err.Error(), "not accessible") {
		t.Errorf("a token to read wrote a status: %v", err)
	}
	if _, err := r.say(forge.Access{Integration: "github", Repository: "acme/other", Need: forge.Statuses, Alone: true}); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a token for acme/other wrote to acme/api: %v", err)
	}
	if _, err := r.say(forge.Access{Integration: "github", Repository: "acme/old-name", RepositoryID: 7, Need: forge.Statuses, Alone: true}); err != nil {
		t.Errorf("a renamed repository: %v", err)
	}
	r.hub.Permit(forgetest.Installation, map[string]string{"contents": "read"})
	r.hub.RevokeTokens()
	var answer *forge.AnswerError
	if _, err := r.say(access()); !errors.As(err, &answer) || answer.Status != 422 || !strings.Contains(err.Error(), "permissions requested are not granted") {
		t.Errorf("%v", err)
	}
}

func TestAnInstallationIsFound(t *testing.T) {
	r := newRig(t)
	r.hub.AddInstallation(99, "acme/api")
	in := &r.config.Integrations[0]
	used := func() string {
		t.Helper()
		calls := r.hub.Calls("POST /app/installations/")
		if len(calls) == 0 {
			return ""
		}
		return strings.Split(calls[len(calls)-1].Path, "/")[3]
	}

	in.Installations = []int64{forgetest.Installation}
	r.mustSay(access())
	if got := used(); got != fmt.Sprint(forgetest.Installation) {
		t.Errorf("the only configured one: used %s", got)
	}
	in.Installations = []int64{forgetest.Installation, 99}
	r.mustSay(access())
	r.mustSay(access())
	if got := used(); got != "99" {
		t.Errorf("the repository's own: used %s", got)
	}
	if n := len(r.hub.Calls("GET /repos/acme/api/installation")); n != 1 {
		t.Errorf("it was asked for %d times", n)
	}
	a := access()
	a.Installation = 12
	if _, err := r.say(a); ci.CodeOf(err) != ci.CodeForbidden {
		t.Errorf("one that is not configured: %v", err)
	}
	in.Installations = []int64{1, 2}
	if _, err := r.say(access()); ci.CodeOf(err) != ci.CodeForbidden {
		t.Errorf("one that was found and is not configured: %v", err)
	}
}

func TestAnInstallationIsSuspendedOrGone(t *testing.T) {
	r := newRig(t)
	r.mustSay(access())
	r.hub.Suspend(forgetest.Installation, true)
	resp, err := r.say(access())
	if err == nil || resp == nil || resp.StatusCode != 403 {
		t.Errorf("suspended with a token: %v", err)
	}
	r.pass(time.Hour)
	var answer *forge.AnswerError
	if _, err := r.say(access()); !errors.As(err, &answer) || answer.Status != 403 {
		t.Errorf("suspended: %v", err)
	}
	r.hub.RemoveInstallation(forgetest.Installation)
	if _, err := r.say(access()); !errors.As(err, &answer) || answer.Status != 404 {
		t.Errorf("gone: %v", err)
	}
}

func TestAConfiguredTokenIsUsedAsItIs(t *testing.T) {
	r := newRig(t)
	r.useToken("ghp_verysecret")
	r.mustSay(access())
	r.hub.Script("POST /repos/", forgetest.Message(401, "Bad credentials: ghp_verysecret"))
	_, err := r.say(access())
	if err == nil {
		t.Fatal("no error")
	}
	if n := len(r.hub.Calls("POST /repos/")); n != 2 {
		t.Errorf("%d calls, want 2: a configured token has no other", n)
	}
}

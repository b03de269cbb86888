package runner_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"docket/scheduler/runner"
	"docket/store/ci"

	"github.com/google/go-cmp/cmp"
)

// Ensure that steps run in order at the exact commit, are recorded before
// they run, and leave no workspace.
func TestCarrySucceeds(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, data := mustRunner(t)
	w := g.work(1, `cat README; git rev-parse HEAD; git status --porcelain; git config remote.origin.url`, `echo two`)
	w.Spec.Steps[1].Deploy = true
	rec := mustSucceed(t, r, w)
	if got, want := rec.text(0), "hello\n"+g.head()+"\n"+g.bare+"\n"; got != want {
		t.Errorf("step 0 printed %q, want %q", got, want)
	}
	want := []string{"start -1 false", "finish -1 succeeded", "start 0 false", "finish 0 succeeded", "start 1 true", "finish 1 succeeded"}
	if d := cmp.Diff(want, rec.events); d != "" {
		t.Error(d)
	}
	if left, _ := filepath.Glob(filepath.Join(data, "workspaces", "*")); len(left) > 0 {
		t.Errorf("workspaces are left: %q", left)
	}
	if rec.process.PID == 0 || rec.process.Start == 0 || rec.process.Machine == "" {
		t.Errorf("the process was recorded as %+v", rec.process)
	}
}

// Ensure that the shell's exit code alone decides and later steps are skipped.
func TestCarryFails(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, _ := mustRunner(t)
	for name, tt := range map[string]struct {
		script string
		exit   int
		reason string
	}{
		"an exit code":          {"exit 3", 3, ""},
		"a failing command":     {"false; echo not reached", 1, ""},
		"an unset variable":     {`echo "$NOBODY_SET_THIS"`, 2, ""},
		"a signal to the shell": {"kill -9 $$", 137, `step "step0": the shell was ended by signal 9 (killed); if the step did not do that itself, memory ran out: see the kernel's log, and give the step less to do at once or the machine more memory`},
	} {
		t.Run(name, func(t *testing.T) {
			res, rec := carry(t, r, g.work(2, tt.script, "echo never"))
			if res.State != ci.Failed || res.Reason != tt.reason {
				t.Errorf("the run is %s (%q), want failed (%q)", res.State, res.Reason, tt.reason)
			}
			if s := res.Steps[0]; s.State != ci.StepFailed || s.ExitCode == nil || *s.ExitCode != tt.exit {
				t.Errorf("step 0 is %+v, want exit code %d", s, tt.exit)
			}
			if s := res.Steps[1]; s.State != ci.StepSkipped || rec.text(1) != "" || strings.Contains(rec.text(0), "not reached") {
				t.Errorf("step 1 is %+v and printed %q", s, rec.text(1))
			}
		})
	}
}

// Ensure that the kernel takes what a step runs before docket where memory runs
// out, and that the log says what the end of a command may mean.
func TestWhereMemoryRunsOut(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, _ := mustRunner(t)
	mine, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		t.Fatal(err)
	}
	own, _ := strconv.Atoi(strings.TrimSpace(string(mine)))
	res, rec := carry(t, r, g.work(1, "cat /proc/self/oom_score_adj; sh -c 'kill -9 $$'"))
	first, _, _ := strings.Cut(rec.text(0), "\n")
	if adj, err := strconv.Atoi(first); err != nil || adj < 500 || own < 500 && adj <= own {
		t.Errorf("a step has the score %q, docket %d", first, own)
	}
	if res.State != ci.Failed || *res.Steps[0].ExitCode != 137 || !rec.noticed("memory ran out") {
		t.Errorf("the run is %s (%q), and says %q", res.State, res.Reason, rec.notices)
	}
}

// Ensure that a step whose start could not be recorded never runs.
func TestCarryUnrecordedStepNeverRuns(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, _ := mustRunner(t)
	mark := filepath.Join(t.TempDir(), "ran")
	rec := newRecorder()
	rec.startErr = func(step int) error {
		if step == 1 {
			return errors.New("no space")
		}
		return nil
	}
	res := r.Carry(context.Background(), g.work(1, "true", "touch "+mark), rec)
	if res.State != ci.Interrupted || res.Steps[1].State != ci.StepSkipped {
		t.Errorf("got %+v", res)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the step ran")
	}
}

// Ensure that the environment is exactly the documented one and that nothing
// of the server's is in it.
func TestEnvironment(t *testing.T) {
	t.Setenv("SERVER_PASSWORD", "of the server")
	g := mustRepository(t)
	r, data := mustRunner(t)
	w := g.work(7, `env -u PWD -u _ -u OLDPWD -u SHLVL | sort; echo "event=$(cat "$DOCKET_EVENT_FILE")"; test -z "$(ls -A "$HOME")"; test -w "$TMPDIR"; readlink /proc/self/fd/0; ls /proc/self/fd`)
	w.Event = []byte(`{"x":1}`)
	w.Spec.Env = map[string]string{"GOFLAGS": "-mod=readonly", "HOME": "/evil", "DOCKET_RUN": "x", "DOCKET_OTHER": "x", "A": "env", "B": "env", "NOT A NAME": "x"}
	w.Run.Inputs = map[string]string{"target-env.x": "staging", "path": "/evil", "docket_ref": "x", "b": "input", "c": "input"}
	w.Spec.Secrets = []string{"C", "NPM_TOKEN", "HOME"}
	w.Secrets = map[string]ci.Secret{"C": ci.NewSecret("c", "s-of-c"), "NPM_TOKEN": ci.NewSecret("n", "s-of-npm"), "HOME": ci.NewSecret("h", "s-of-home"), "UNASKED": ci.NewSecret("u", "s-of-unasked")}
	rec := mustSucceed(t, r, w)
	dir := filepath.Join(data, "workspaces", "api", "7-1")
	want := []string{
		"A=env", "B=input", "C=***", "CI=true", "DOCKET=true", "DOCKET_BRANCH=main", "DOCKET_COMMIT=" + g.head(), "DOCKET_EVENT=push",
		"DOCKET_EVENT_FILE=" + dir + "/event.json", "DOCKET_NUMBER=7", "DOCKET_PROJECT=api", "DOCKET_REF=refs/heads/main",
		"DOCKET_RUN=api-7", "DOCKET_TAG=", "DOCKET_URL=https://ci.example.org/runs/api-7", "GOFLAGS=-mod=readonly",
		"HOME=" + dir + "/home", "LANG=C.UTF-8", "NPM_TOKEN=***",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TARGET_ENV_X=staging", "TMPDIR=" + dir + "/tmp",
		`event={"x":1}`, "/dev/null", "0", "1", "2", "3", // 3 is how ls reads the directory
	}
	got := strings.Split(strings.TrimSuffix(rec.text(0), "\n"), "\n")
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, v := range runner.Variables() {
		if !strings.Contains(rec.text(0), v.Name+"=") || v.Meaning == "" {
			t.Errorf("%s is documented and not set, or has no meaning", v.Name)
		}
	}
}

// Ensure that a fork's run gets no secret, whatever it was handed, and that a
// frozen secret which is gone ends any other run before its first step.
func TestSecretsAndForks(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, _ := mustRunner(t)
	w := g.work(1, `echo "token=${NPM_TOKEN-unset}"; test ! -e ~/.git-credentials; test -z "$(env | grep -i hidden || true)"`)
	w.Spec.Secrets = []string{"NPM_TOKEN"}
	w.Secrets = map[string]ci.Secret{"NPM_TOKEN": ci.NewSecret("n", "hidden-value")}
	w.Run.Fork = true
	if rec := mustSucceed(t, r, w); rec.text(0) != "token=unset\n" {
		t.Errorf("the fork's step printed %q", rec.text(0))
	}
	w.Run.Fork, w.Secrets = false, nil
	res, rec := carry(t, r, w)
	if res.State != ci.Failed || !strings.Contains(res.Reason, "NPM_TOKEN") || rec.text(0) != "" {
		t.Errorf("without the secret the run is %s (%s) and printed %q", res.State, res.Reason, rec.text(0))
	}
}

// Ensure that long values are cut on a character's boundary and said so, and
// that a huge script runs.
func TestLongValuesAndScripts(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, _ := mustRunner(t)
	w := g.work(1, "printf %s \"$LONG\" | wc -c; printf %s \"$BYTES\" | wc -c\n: "+strings.Repeat("x", 300<<10))
	w.Run.Inputs = map[string]string{"long": "a" + strings.Repeat("é", 20<<10), "bytes": strings.Repeat("\x80", 40<<10)}
	rec := mustSucceed(t, r, w)
	if rec.text(0) != "32767\n32768\n" {
		t.Errorf("the lengths are %q", rec.text(0))
	}
	if !rec.noticed("LONG is longer than 32 KiB") {
		t.Errorf("nobody was told: %q", rec.notices)
	}
}

// Ensure that names which would be code on a command line stay text.
func TestInjection(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, _ := mustRunner(t)
	for i, name := range []string{"a;$(touch${IFS}pwned)`id`x&|", `it's"q"`, "--upload-pack=touch${IFS}pwned", "-x", "%2e%2e", "HEAD", "refs/heads/main", "@", "日本語/é", "日本語/e\u0301", "a/b", "a_b", "a-b", strings.Repeat("l", 244)} {
		t.Run(fmt.Sprintf("%.40q", name), func(t *testing.T) {
			ref := "refs/heads/" + name
			if len(name) < 100 { // longer ones are no loose ref, the commit is fetched all the same
				g.git("push", "-q", "--force", "origin", "HEAD:"+ref)
				defer g.git("push", "-q", "origin", ":"+ref)
				if got, err := r.Resolve(context.Background(), g.bare, ref); err != nil || got != g.head() {
					t.Fatalf("resolved to %q, %v", got, err)
				}
			}
			w := g.work(uint64(i+1), `printf '%s|%s|%s' "$DOCKET_BRANCH" "$DOCKET_REF" "$WHAT"; test ! -e pwned`)
			w.Run.Source.Ref, w.Run.Source.Branch = ref, name
			w.Run.Inputs = map[string]string{"what": name + "\nline two"}
			if rec := mustSucceed(t, r, w); rec.text(0) != name+"|"+ref+"|"+name+"\nline two" {
				t.Errorf("the step saw %q", rec.text(0))
			}
		})
	}
}

// Ensure that the order of stdout and stderr is kept and bytes stay as they are.
func TestOutputBytes(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, _ := mustRunner(t)
	for name, tt := range map[string]struct{ script, want string }{
		"order":            {`for i in 1 2 3 4 5 6 7 8; do echo out$i; echo err$i >&2; done`, "out1\nerr1\nout2\nerr2\nout3\nerr3\nout4\nerr4\nout5\nerr5\nout6\nerr6\nout7\nerr7\nout8\nerr8\n"},
		"binary":           {`printf '\202\037\213\000'`, "\x82\x1f\x8b\x00"},
		"a cut character":  {`printf '\303'; printf '\251'`, "é"},
		"a control line":   {`printf 'x\n::error::y\n[docket] z'`, "x\n::error::y\n[docket] z"},
		"one 10 MB line":   {`head -c 10000000 /dev/zero | tr '\0' x`, strings.Repeat("x", 10000000)},
		"a million breaks": {`yes '' | head -n 1000000`, strings.Repeat("\n", 1000000)},
	} {
		t.Run(name, func(t *testing.T) {
			rec := mustSucceed(t, r, g.work(1, tt.script))
			if got := rec.text(0); got != tt.want {
				t.Errorf("got %d bytes %.80q, want %d bytes %.80q", len(got), got, len(tt.want), tt.want)
			}
		})
	}
}

// Ensure that past the limit output is dropped with one notice, promptly, and
// the exit code still decides.
func TestLogLimit(t *testing.T) {
	g := mustRepository(t)
	r, _ := mustRunner(t)
	w := g.work(1, `yes | head -c 50000000; echo "end" >&2`, "echo more; exit 4")
	w.LogLimit = 100_000
	start := time.Now()
	res, rec := carry(t, r, w)
	if res.Steps[0].State != ci.StepSucceeded || *res.Steps[1].ExitCode != 4 {
		t.Errorf("the steps are %+v", res.Steps)
	}
	if got := len(rec.text(0)) + len(rec.text(1)); got != 100_000 {
		t.Errorf("%d bytes were kept", got)
	}
	if n := rec.noticeCount("reached its limit of 100000 bytes"); n != 1 {
		t.Errorf("%d notices: %q", n, rec.notices)
	}
	if d := time.Since(start); d > 15*time.Second {
		t.Errorf("it took %s", d)
	}
}

// Ensure that a full disk under the log changes nothing but the log.
func TestOutputRefused(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, _ := mustRunner(t)
	rec := newRecorder()
	refuse := true
	rec.outErr = func() error {
		if refuse {
			return errors.New("no space left on device")
		}
		return nil
	}
	res := r.Carry(context.Background(), g.work(1, "echo lost", "echo also lost"), rec)
	if res.State != ci.Succeeded || rec.noticeCount("are lost") != 2 {
		t.Errorf("got %+v, notices %q", res, rec.notices)
	}
}

// Ensure that secrets are masked wherever a write ends.
func TestMaskedOutput(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, _ := mustRunner(t)
	w := g.work(1, `printf 'a %s b ' "$KEY"; printf %s "$KEY" | head -c 9; sleep 0.2; printf %s "$KEY" | tail -c +10; echo; printf %s "$KEY" | sed -n 2p; printf '%s' "$KEY" | head -c 4`)
	secret := "first line 1\nsecond line 2\nshort"
	w.Spec.Secrets = []string{"KEY"}
	w.Secrets = map[string]ci.Secret{"KEY": ci.NewSecret("k", secret)}
	if got, want := mustSucceed(t, r, w).text(0), "a *** b ***\n***\nfirs"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Ensure that file names of any kind are checked out and do no harm.
func TestFileNames(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, _ := mustRunner(t)
	names := []string{"critical/café.txt", `a "b".txt`, "tab\there", "x\n::error::y", "invalid\xff\xfe", "-rf", "con.txt", "A.txt", "a.txt", strings.Repeat("n", 255)}
	for _, n := range names {
		path := filepath.Join(g.dir, n)
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(n), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	g.push()
	rec := mustSucceed(t, r, g.work(1, `find . -type f -not -path './.git/*' | wc -l; find . -type f -not -path './.git/*' -print0 | xargs -0 cat`))
	for _, n := range names {
		if !strings.Contains(rec.text(0), n) {
			t.Errorf("%q is not there", n)
		}
	}
	body, err := r.ReadFile(context.Background(), "api", g.bare, "refs/heads/main", g.head(), "x\n::error::y", 100)
	if err != nil || !bytes.Equal(body, []byte("x\n::error::y")) {
		t.Errorf("read %q, %v", body, err)
	}
}

// Ensure that a read-only tree is removed, and that Sweep keeps what is known.
func TestRemoveAndSweep(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, data := mustRunner(t)
	mustSucceed(t, r, g.work(1, "mkdir -p ro/deep; touch ro/deep/f; chmod -R a-w ro"))
	for _, p := range []string{"api/2-1/src", "api/3-2/src", "gone/1-1/src", ".scratch/x"} {
		if err := os.MkdirAll(filepath.Join(data, "workspaces", p), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Sweep(map[string]bool{"api-3": true}); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(data, "workspaces", "*", "*"))
	if want := []string{filepath.Join(data, "workspaces", "api", "3-2")}; !cmp.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
	if err := r.Remove(ci.Run{Project: "../x", Number: 1}); err == nil {
		t.Error("a project name that leaves the directory was taken")
	}
}

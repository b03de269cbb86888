package dispatcher

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"docket/dispatcher/forge"
	"docket/store/ci"
)

// maxAnswer is how much of an answer is read, in bytes.
const maxAnswer = 64 << 10

// answer is what a receiver said.
type answer struct {
	status   int
	header   http.Header
	body     []byte
	location *url.URL // of a redirect; nil for none
}

// post sends one request and reads its answer. A body that breaks off is no
// error: the status has been said.
func post(ctx context.Context, c *http.Client, address string, header http.Header, body []byte) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return answer{}, errAddress
	}
	req.Header = header
	resp, err := c.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	return read(resp), nil
}

// errAddress stands for url.Parse's error, which would show the address.
var errAddress = errors.New("the configured address is not a URL")

func read(resp *http.Response) answer {
	body, _ := io.ReadAll(resp.Body)
	a := answer{status: resp.StatusCode, header: resp.Header, body: body}
	if a.redirect() {
		a.location, _ = resp.Location()
	}
	return a
}

func (a answer) ok() bool       { return a.status >= 200 && a.status < 300 }
func (a answer) redirect() bool { return a.status >= 300 && a.status < 400 }

// said returns status and text, as in `503 Service Unavailable: try later`.
func (a answer) said(secrets ...string) string {
	s := strings.TrimSpace(strconv.Itoa(a.status) + " " + http.StatusText(a.status))
	if t := excerpt(string(a.body), secrets...); t != "" {
		s += ": " + t
	}
	return s
}

// pointedTo returns a redirect's address without what may be a secret in it:
// user, query and fragment, and the path too where that is one.
func (a answer) pointedTo(path bool) string {
	if a.location == nil {
		return "nowhere"
	}
	u := url.URL{Scheme: a.location.Scheme, Host: a.location.Host}
	if path {
		u.Path = a.location.Path
	}
	return excerpt(u.String())
}

// Bounds on how long a receiver may make docket wait.
const (
	minRetryAfter = time.Second
	maxRetryAfter = 24 * time.Hour // of webhooks and Slack
)

func clamp(d, lo, hi time.Duration) time.Duration { return min(max(d, lo), hi) }

// judge is what webhooks and Slack have in common: everything but 2xx. who
// names the receiver.
func judge(a answer, who string, now time.Time, path bool, secrets ...string) Result {
	wait, told := forge.RetryAfter(a.header, now)
	again := a.status == http.StatusTooManyRequests || a.status >= 500 || (a.status == http.StatusForbidden && told)
	switch {
	case again && told:
		wait = clamp(wait, minRetryAfter, maxRetryAfter)
		return Result{Outcome: Retry, Detail: who + " answered " + a.said(secrets...), RetryAt: now.Add(wait), Hold: true}
	case again:
		return Result{Outcome: Retry, Detail: who + " answered " + a.said(secrets...)}
	case a.redirect():
		return Result{Outcome: Dead, Detail: fmt.Sprintf("%s redirected to %s (%d), which docket never follows; configure the final address", who, a.pointedTo(path), a.status)}
	}
	return Result{Outcome: Dead, Detail: who + " answered " + a.said(secrets...)}
}

// silence is the result of a request that got no answer. Whether it arrived
// is not known, so it is sent again.
func silence(err error, who string, secrets ...string) Result {
	if errors.Is(err, errAddress) {
		return Result{Outcome: Dead, Detail: who + " cannot be called: " + err.Error()}
	}
	var ne net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &ne) && ne.Timeout() {
		return Result{Outcome: Retry, Detail: who + " did not answer in time"}
	}
	var ue *url.Error
	if errors.As(err, &ue) { // its text would show the whole address
		err = ue.Err
	}
	return Result{Outcome: Retry, Detail: who + " could not be reached: " + excerpt(err.Error(), secrets...)}
}

// hide replaces secrets in a text that came from outside.
func hide(s string, secrets ...string) string {
	for _, secret := range secrets {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, ci.Mask)
		}
	}
	return s
}

package forge

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Bounds on what GitHub's rate limits make docket wait, see
// https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
const (
	minLimitWait    = time.Second
	maxLimitWait    = time.Hour // a primary limit is reset hourly
	silentLimitWait = time.Minute
)

// LimitWait reports whether an answer is a rate limit, primary or secondary,
// or another request to come back later, and for how long it asks to be left
// alone: a second to an hour. Where it is a limit and says no time, wait is
// what silent returns, at least a minute.
func LimitWait(status int, h http.Header, body []byte, now time.Time, silent func() time.Duration) (wait time.Duration, limited bool) {
	told, ok := RetryAfter(h, now)
	empty := h.Get("X-Ratelimit-Remaining") == "0"
	switch {
	case status >= 500:
		return clamp(told, minLimitWait, maxLimitWait), ok
	case status == http.StatusTooManyRequests:
	case status == http.StatusForbidden && (ok || empty || mentionsLimit(body)):
	default:
		return 0, false
	}
	if ok {
		return clamp(told, minLimitWait, maxLimitWait), true
	}
	if reset, err := strconv.ParseInt(h.Get("X-Ratelimit-Reset"), 10, 64); empty && err == nil && reset > 0 {
		// Against the answer's own Date, so that a clock that is off does not matter.
		return clamp(time.Duration(min(reset-sentAt(h, now).Unix(), 1e9))*time.Second, minLimitWait, maxLimitWait), true
	}
	return clamp(silent(), silentLimitWait, maxLimitWait), true
}

func mentionsLimit(body []byte) bool {
	s := strings.ToLower(string(body))
	return strings.Contains(s, "rate limit") || strings.Contains(s, "rate-limit") || strings.Contains(s, "abuse detection")
}

// RetryAfter reads Retry-After, in seconds or as a date, which is taken
// against the answer's own Date so that a clock that is off does not matter.
// ok is false where there is none that can be read.
func RetryAfter(h http.Header, now time.Time) (wait time.Duration, ok bool) {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.ParseInt(v, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		const years = 1e9 // seconds; keeps the product within a Duration
		return time.Duration(min(max(n, -years), years)) * time.Second, true
	}
	if t, err := http.ParseTime(v); err == nil {
		return t.Sub(sentAt(h, now)), true
	}
	return 0, false
}

func sentAt(h http.Header, now time.Time) time.Time {
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		return t
	}
	return now
}

func clamp(d, lo, hi time.Duration) time.Duration { return min(max(d, lo), hi) }

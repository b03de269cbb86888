package web

import (
	"fmt"
	"strconv"
	"time"

	"docket/store/ci"
)

// duration returns how long something took, or has taken by now.
func duration(from, to ci.Time, now time.Time) time.Duration {
	switch {
	case from.IsZero():
		return 0
	case !to.IsZero():
		return max(0, to.Sub(from.Time))
	case now.IsZero():
		return 0
	}
	return max(0, now.Sub(from.Time))
}

// durationText is 1m 05s, 2h 03m, 4d 02h, 12s or 0.4s.
func durationText(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 10*time.Second && d%time.Second != 0:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh %02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd %02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// ageText is "just now", "5 min ago", "3 h ago", "2 days ago", "in 4 min", or
// the date.
func ageText(t, now time.Time) string {
	d := now.Sub(t)
	if d < 0 {
		if d = -d; d < time.Minute {
			return "in " + strconv.Itoa(max(1, int(d.Seconds()))) + " s"
		}
		return "in " + span(d)
	}
	switch {
	case d < 45*time.Second:
		return "just now"
	case d < 14*24*time.Hour:
		return span(d) + " ago"
	}
	return t.UTC().Format("2 Jan 2006")
}

func span(d time.Duration) string {
	switch {
	case d < time.Hour:
		return strconv.Itoa(max(1, int(d.Minutes()+0.5))) + " min"
	case d < 36*time.Hour:
		return strconv.Itoa(int(d.Hours()+0.5)) + " h"
	}
	return strconv.Itoa(int(d.Hours()/24+0.5)) + " days"
}

// bytesText is 512 bytes, 1.5 KiB, 9.9 MiB.
func bytesText(n int64) string {
	const unit = 1024
	switch {
	case n == 1:
		return "1 byte"
	case n < unit:
		return strconv.FormatInt(n, 10) + " bytes"
	case n < unit*unit:
		return fmt.Sprintf("%.1f KiB", float64(n)/unit)
	case n < unit*unit*unit:
		return fmt.Sprintf("%.1f MiB", float64(n)/unit/unit)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/unit/unit/unit)
}

// countText is 1,234,567.
func countText(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// short returns the first ten digits of a commit.
func short(commit string) string { return commit[:min(10, len(commit))] }

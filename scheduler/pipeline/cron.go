package pipeline

import (
	"strings"
	"time"
	_ "time/tzdata" // a minimal container has no zone data of its own

	"github.com/robfig/cron/v3"

	"docket/store/ci"
)

// ParseCron reads a schedule's time table: five fields (minute, hour, day of
// month, month, day of week) or @hourly, @daily, @weekly, @monthly, @yearly.
// Its times are local ones, to be put in a zone by the caller. The error is
// CodeInvalid and reads as what follows the quoted text.
func ParseCron(text string) (*cron.SpecSchedule, error) {
	const example = `write five fields as in "30 2 * * 1-5", or @daily`
	switch {
	case strings.TrimSpace(text) == "":
		return nil, invalid("is empty; %s", example)
	case strings.Contains(text, "TZ="):
		return nil, invalid("has a time zone in it; put the zone into timezone")
	case strings.HasPrefix(text, "@every"):
		return nil, invalid("has no fixed times of the day, so a slot of it could not be told from another; %s", example)
	}
	parsed, err := cron.ParseStandard(text)
	if err != nil {
		return nil, invalid("is not a time table (%s); %s", err, example)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, invalid("is not a time table; %s", example)
	}
	spec.Location = time.UTC // the local time is counted as if it were UTC
	if spec.Next(time.Date(2023, 12, 31, 23, 59, 0, 0, time.UTC)).IsZero() {
		return nil, invalid("never comes, as there is no such day; %s", example)
	}
	return spec, nil
}

// ParseZone returns a schedule's time zone, UTC for "". The error is
// CodeInvalid and reads as what follows the quoted name.
func ParseZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	if name != "Local" { // would be another one on another machine
		if zone, err := time.LoadLocation(name); err == nil {
			return zone, nil
		}
	}
	return nil, ci.Errorf(ci.CodeInvalid, "is not a time zone; write its IANA name, as in Europe/Berlin or America/New_York")
}

package web

import "docket/store/ci"

// Schedule is one of a project's time tables.
type Schedule struct {
	Cron     string
	Timezone string
	Branch   string
	NextAt   ci.Time // zero: never
	Next     string  // the same on the zone's clock
	LastRun  string  // "" for none
}

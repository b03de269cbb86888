package dispatcher

// What the tests of this package's pure parts call.
var (
	NextDelay    = nextDelay
	Settle       = settle
	Shorten      = shorten
	Excerpt      = excerpt
	Outward      = outward
	SlackText    = slackText
	CheckSummary = checkSummary
)

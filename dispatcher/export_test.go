package dispatcher

// What the tests of this package's pure parts call.
var (
	NextDelay    = nextDelay
	Settle       = settle
	Shorten      = shorten
	Excerpt      = excerpt
	SlackText    = slackText
	CheckSummary = checkSummary
)

const MaxAnswer = maxAnswer

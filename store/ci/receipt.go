package ci

// Outcome is what became of a delivery.
type Outcome string

const (
	Accepted Outcome = "accepted" // it started runs
	Ignored  Outcome = "ignored"  // it is on record and started nothing
)

// Receipt is the durable record of one delivery. Its body lies apart.
type Receipt struct {
	ID           string     `json:"id"` // ReceiptID.String
	Integration  string     `json:"integration"`
	Installation string     `json:"installation"` // "-" for none
	Delivery     string     `json:"delivery"`
	Event        string     `json:"event"`
	Action       string     `json:"action"`
	Outcome      Outcome    `json:"outcome"`
	Reason       string     `json:"reason"`
	Runs         []string   `json:"runs"` // run ids
	Repository   Repository `json:"repository"`
	Ref          string     `json:"ref"`
	Commit       string     `json:"commit"`
	BodySHA256   string     `json:"body_sha256"`
	BodyBytes    int64      `json:"body_bytes"`
	Secret       string     `json:"secret"` // which configured secret matched, never its value
	ReceivedAt   Time       `json:"received_at"`
	Verdicts     []Verdict  `json:"verdicts"`
	Twin         string     `json:"twin,omitempty"` // another receipt of the same push or bytes
	// TwinRun is the run that was started for the same head before this
	// delivery of it arrived.
	TwinRun string `json:"twin_run,omitempty"`
	// TraceID is the trace that tells of the delivery. It is filled in when a
	// receipt is shown, and not kept.
	TraceID string `json:"trace_id,omitempty"`

	// PushedAt is Event.PushedAt; with the digest it finds known bytes again.
	PushedAt int64 `json:"pushed_at,omitempty"`
}

// Verdict is one judgement of a delivery under the configuration of its time.
type Verdict struct {
	At      Time    `json:"at"`
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason"`
}

// ReceiptID returns the receipt's identity.
func (r *Receipt) ReceiptID() ReceiptID {
	return ReceiptID{r.Integration, r.Installation, r.Delivery}
}

package web

import "docket/store/ci"

// PartList is the live part of pages that are a list.
const PartList = "list"

// DeliveriesPage is the page at /deliveries: what arrived and what became of
// it, and what was refused at the door.
type DeliveriesPage struct {
	Chrome
	// Find is the delivery id that was looked for (?find=), as GitHub shows it.
	// If exactly one is known, redirect to it instead.
	Find string
	// Outcome is the filter (?outcome=), "" for all.
	Outcome  ci.Outcome
	Receipts []ci.Receipt
	Next     string // path and query of the older page
	Newest   string // path and query of the first page, "" if this is it
	Refusals []Refusal
	// RefusalsSince is when the server began to remember refusals: at its start.
	RefusalsSince ci.Time
}

func (*DeliveriesPage) template() string { return "deliveries" }

// Parts names the live parts.
func (*DeliveriesPage) Parts() []string { return []string{PartBanners, PartRefusals, PartList} }

// PartRefusals is the list of recent refusals.
const PartRefusals = "refusals"

// Refusal is a delivery that was turned away and not stored. What to do about
// it comes from Reason.
type Refusal struct {
	At          ci.Time
	Integration string // "" for an unknown one
	Reason      string // which check: "signature", "repository", ...
	Status      int
	Detail      string
	Event       string
	Delivery    string
	Bytes       int64
	Remote      string
}

// DeliveryPage is the page at /deliveries/{integration}/{installation}/{delivery}.
type DeliveryPage struct {
	Chrome
	Receipt ci.Receipt
	Runs    []RunRow
	Header  map[string]string
	Body    []byte // as received; shown up to BodyShown
	BodyURL string // of the exact bytes
	// InForce is what the same bytes would lead to under the configuration in
	// force; nil where that cannot be said.
	InForce *ci.Explanation
	// Replay is nil where it is not for this person.
	Replay *RunAction
}

// BodyShown is how many bytes of a body a page shows.
const BodyShown = 256 << 10

func (*DeliveryPage) template() string { return "delivery" }

// DeliveryPath returns the path of a delivery's page.
func DeliveryPath(id ci.ReceiptID) string { return "/deliveries/" + id.Path() }

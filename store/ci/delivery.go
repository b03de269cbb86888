package ci

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

// MaxHeaderValue bounds the event kind and the delivery id, in bytes.
const MaxHeaderValue = 200

// Delivery is one webhook request whose signature held over exactly Body.
type Delivery struct {
	Integration  string
	Installation int64 // 0: a webhook that has no installation
	ID           string
	Event        string
	Header       map[string]string // the few headers worth keeping
	Body         []byte            // the bytes as received
	BodySHA256   string            // hex digest of Body
	Secret       string            // the name of the configured secret that matched
	ReceivedAt   time.Time
}

// ReceiptID returns the delivery's identity.
func (d *Delivery) ReceiptID() ReceiptID {
	return NewReceiptID(d.Integration, d.Installation, d.ID)
}

// ReceiptID is a receipt's identity: the configured integration, the verified
// installation ("-" for none) and the provider's delivery id.
type ReceiptID struct {
	Integration, Installation, Delivery string
}

// NoInstallation is the middle part of a receipt's id where a webhook has no
// installation.
const NoInstallation = "-"

// NewReceiptID builds an identity; installation 0 means none.
func NewReceiptID(integration string, installation int64, delivery string) ReceiptID {
	in := NoInstallation
	if installation > 0 {
		in = strconv.FormatInt(installation, 10)
	}
	return ReceiptID{integration, in, delivery}
}

// ParseReceiptID reads integration/installation/delivery. The delivery is
// everything after the second slash, as it is.
func ParseReceiptID(s string) (ReceiptID, error) {
	p := strings.SplitN(s, "/", 3)
	if len(p) != 3 || p[0] == "" || p[1] == "" || p[2] == "" {
		return ReceiptID{}, Errorf(CodeInvalid, "%q is not a receipt's id; want INTEGRATION/INSTALLATION/DELIVERY, as `docket receipts list` prints it", s)
	}
	return ReceiptID{p[0], p[1], p[2]}, nil
}

// String returns integration/installation/delivery.
func (r ReceiptID) String() string {
	return r.Integration + "/" + r.Installation + "/" + r.Delivery
}

// Path returns the id as three percent-encoded path segments.
func (r ReceiptID) Path() string {
	return url.PathEscape(r.Integration) + "/" + url.PathEscape(r.Installation) + "/" + url.PathEscape(r.Delivery)
}

// PrintableHeader reports whether s may be an event kind or a delivery id:
// 1 to 200 bytes of printable ASCII without blanks at the ends.
func PrintableHeader(s string) bool {
	if len(s) == 0 || len(s) > MaxHeaderValue || s != strings.TrimSpace(s) {
		return false
	}
	return printable(s)
}

// PrintableKey reports whether s may be an idempotency key: 1 to 255
// printable ASCII bytes, not all of them blank.
func PrintableKey(s string) bool {
	return len(s) > 0 && len(s) <= 255 && strings.TrimSpace(s) != "" && printable(s)
}

func printable(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

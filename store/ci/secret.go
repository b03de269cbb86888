package ci

import (
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

// Secret is a configured secret value. It has a name that may be shown and a
// value that never is: String, Format, JSON and slog all give a mask.
type Secret struct {
	// Name tells which configured secret this is: its file, its variable or
	// its position. It is safe to show.
	Name string
	// value lies behind a pointer: what prints a struct by reflection, without
	// asking its fields, shows an address.
	value *string
}

// Mask stands wherever a secret was.
const Mask = "***"

// NewSecret returns a secret under a name that is safe to show.
func NewSecret(name, value string) Secret { return Secret{Name: name, value: &value} }

// Reveal returns the value, for the one place that needs it.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero reports whether the secret has no value.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

// Equal compares values in constant time.
func (s Secret) Equal(value string) bool {
	return subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(value)) == 1
}

// Format writes the mask, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, Mask) }

// String returns the mask.
func (s Secret) String() string { return Mask }

// GoString returns the mask.
func (s Secret) GoString() string { return Mask }

// MarshalText returns the mask.
func (s Secret) MarshalText() ([]byte, error) { return []byte(Mask), nil }

// LogValue returns the mask.
func (s Secret) LogValue() slog.Value { return slog.StringValue(Mask) }

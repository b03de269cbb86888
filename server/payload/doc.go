// Package payload is what the webhooks of all providers have in common:
// content types and forms, headers, signatures, and JSON that is read once. It
// is pure: values in, values out, no I/O.
package payload

// Provider is what messages to people call a provider and its settings.
type Provider struct {
	Name      string // as it writes itself
	TypeField string // what its webhook settings call the content type
}

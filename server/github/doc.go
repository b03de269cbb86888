// Package github reads GitHub's webhooks: whether a delivery is genuine, and
// what it says. It is pure: values in, values out, no I/O.
package github

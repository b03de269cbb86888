// Package pipeline decides what an event or a request starts, and freezes it.
// It is pure: values in, values out, no I/O, no clock.
package pipeline

// Package recovery compares what a provider says with what docket knows, and
// decides what to ask for again. It takes values and returns values: nothing
// in it reads the store, the network or the clock.
package recovery

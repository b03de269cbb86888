//go:build !failpoints

package main

// failpointsOf returns none: only a docket that was built for tests, with the
// build tag failpoints, can be told to fail.
func failpointsOf(func(string) string) failpoints { return failpoints{} }

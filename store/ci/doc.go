// Package ci is docket's vocabulary: the nouns that every room of the house
// uses, the states a run can be in and the table of moves between them, and
// the one error type. It imports the standard library only and does no I/O.
package ci

package main

import (
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Bounds on a configuration file, so that no file can exhaust the program.
const (
	maxConfigBytes = 1 << 20
	maxNesting     = 64
	maxNodes       = 100_000 // with every alias followed
)

// tooDeep returns the token that nests deeper than maxNesting, or nil. The
// parser is recursive, so this comes before it.
func tooDeep(tokens token.Tokens) *token.Token {
	open, chain := 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			open++
		case token.MappingEndType, token.SequenceEndType:
			open--
		case token.SequenceEntryType, token.MappingKeyType, token.TagType, token.AnchorType:
			chain++
			if chain > maxNesting {
				return t
			}
			continue
		case token.CommentType:
			continue
		}
		chain = 0
		if open > maxNesting {
			return t
		}
	}
	return nil
}

// spend counts values that reading a node costs, and reports whether the file
// may go on: a short one can unfold to more than any memory holds.
func (r *reader) spend(n ast.Node, values int) bool {
	within := r.nodes <= maxNodes
	r.nodes += values
	if r.nodes <= maxNodes {
		return true
	}
	if within {
		r.at(n, "the aliases of this file unfold to more than %d values; write them out", maxNodes)
	}
	return false
}

package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
)

// pageFlags are the flags that every listing has.
type pageFlags struct {
	limit  int
	cursor string
}

func (p *pageFlags) add(cmd *cobra.Command) {
	cmd.Flags().IntVar(&p.limit, "limit", 50, "how `MANY` to list, 1 to 200")
	cmd.Flags().StringVar(&p.cursor, "cursor", "", "go on after a page: its next `CURSOR`")
}

// query returns the page and the filters that are not empty as a query.
func (p *pageFlags) query(cmd *cobra.Command, filters map[string]string) (string, error) {
	if p.limit < 1 || p.limit > 200 {
		return "", usagef(cmd, "--limit is %d: use 1 to 200", p.limit)
	}
	q := url.Values{"limit": {strconv.Itoa(p.limit)}}
	if p.cursor != "" {
		q.Set("cursor", p.cursor)
	}
	for name, value := range filters {
		if value != "" {
			q.Set(name, value)
		}
	}
	return "?" + q.Encode(), nil
}

// more tells on stderr how to see the next page.
func (a *app) more(next string) {
	if next != "" {
		fmt.Fprintf(a.err, "there are more: add --cursor %s\n", printableText(next))
	}
}

// randomKey returns a new idempotency key.
func randomKey() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b)
}

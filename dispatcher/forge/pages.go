package forge

import "docket/store/ci"

// perPage is the most that GitHub lists at once, and maxPages how many pages of
// one listing are read: a fifth of a million entries.
const (
	perPage  = 100
	maxPages = 2000
)

// eachPage calls read for page after page until there is no next one. A
// listing that goes back, or has no end, is CodeUnavailable: what answers is
// not to keep docket busy for ever.
func eachPage(what string, read func(page int) (next int, err error)) error {
	for page, n := 1, 0; page != 0; n++ {
		next, err := read(page)
		if err != nil {
			return err
		}
		if next != 0 && next <= page || n == maxPages {
			return endless(what)
		}
		page = next
	}
	return nil
}

func endless(what string) error {
	return ci.Errorf(ci.CodeUnavailable, "the listing of %s does not end; see what answers at the integration's api_url", what)
}

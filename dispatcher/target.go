package dispatcher

import (
	"fmt"
	"slices"

	"docket/store/ci"
)

// configured returns the receiver that an entry is for, as it is configured
// now, or why there is none. Of several with one address it takes the one
// that asks for the entry's event.
func configured(c *ci.Config, e ci.OutboxEntry) (ci.Notify, string) {
	name, _, err := ci.ParseRunID(e.Run)
	if err != nil {
		return ci.Notify{}, ci.MessageOf(err)
	}
	p := c.Project(name)
	if p == nil {
		return ci.Notify{}, fmt.Sprintf("the project %s is no longer configured, so %s is not told", name, e.Target)
	}
	var found *ci.Notify
	for i := range p.Notify {
		n := &p.Notify[i]
		if n.Kind != e.Kind || n.Target != e.Target {
			continue
		}
		if found == nil || !slices.Contains(found.Events, e.Event) && slices.Contains(n.Events, e.Event) {
			found = n
		}
	}
	if found == nil {
		return ci.Notify{}, fmt.Sprintf("%s is no longer configured under notify of the project %s; add it again and retry this entry, or discard it", e.Target, name)
	}
	return *found, ""
}

package web

import "docket/store/ci"

// NotificationsPage is the page at /notifications.
type NotificationsPage struct {
	Chrome
	State   ci.OutboxState // the filter (?state=), "" for all
	Entries []EntryRow
	Next    string // path and query of the older page
	Newest  string // path and query of the first page, "" if this is it
	Holds   []Hold
	Pending int // how many wait in all
	Dead    int // how many were given up in all
}

func (*NotificationsPage) template() string { return "notifications" }

// Parts names the live parts.
func (*NotificationsPage) Parts() []string { return []string{PartBanners, PartList} }

// EntryRow is one notification. The actions are nil where they are not
// possible, or not for this person.
type EntryRow struct {
	ci.OutboxEntry
	Retry   *RunAction // posts to /notifications/{id}/retry
	Discard *RunAction // posts to /notifications/{id}/discard
}

// Earlier are the attempts before the last one, whose answer is the row's own.
func (r EntryRow) Earlier() []ci.Try {
	if len(r.Tries) < 2 {
		return nil
	}
	return r.Tries[:len(r.Tries)-1]
}

// Hold is a rate limit that is being waited out.
type Hold struct {
	Key    string // an integration's name or a target
	Until  ci.Time
	Reason string
}

// Tabs are the states.
func (p *NotificationsPage) Tabs() []link {
	list := tabs("/notifications", "state", string(p.State), [2]string{"", "All"},
		[2]string{string(ci.OutboxPending), "Waiting"}, [2]string{string(ci.OutboxDead), "Given up"},
		[2]string{string(ci.OutboxSent), "Sent"}, [2]string{string(ci.OutboxSkipped), "Skipped"})
	for i, n := range map[int]int{1: p.Pending, 2: p.Dead} {
		if n > 0 {
			list[i].Text += " " + countText(n)
		}
	}
	return list
}

// EmptyText says what an empty list means.
func (p *NotificationsPage) EmptyText() string {
	switch p.State {
	case ci.OutboxPending:
		return "Nothing waits: everyone has been told."
	case ci.OutboxDead:
		return "Nothing was given up."
	case ci.OutboxSent:
		return "Nothing has been sent yet."
	case ci.OutboxSkipped:
		return "Nothing was skipped."
	}
	return "Nothing has been sent yet. Once a run exists, the commit's status and the project's notify: targets show here."
}

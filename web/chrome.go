package web

import (
	"time"

	"docket/store/ci"
)

// Section is the part of the house that a page belongs to; its entry in the
// navigation is marked.
type Section string

// Sections of the navigation.
const (
	SectionOverview      Section = "overview"
	SectionDeliveries    Section = "deliveries"
	SectionNotifications Section = "notifications"
	SectionDecisions     Section = "decisions"
	SectionSetup         Section = "setup"
)

// User is who is signed in.
type User struct {
	Name string
	Role ci.Role
}

// Chrome is what every page has around its own matter. Embed it and fill it:
//
//	web.Overview{Chrome: web.Chrome{Title: "Overview", Now: now, ...}}
type Chrome struct {
	Title   string  // of the document, before " · docket"
	Section Section // "" where none fits
	User    *User   // nil: nobody is signed in, and only public things are shown
	Banners []Banner
	// Notice is one sentence about what the form just sent has done, "" for none.
	Notice string
	// Stream is the path (and query) of the page's event stream, "" for a page
	// that stands still. It may be the page's own path.
	Stream string
	// Now is the time that ages are counted from. Zero leaves them out.
	Now time.Time
	// Path is the page's own path and query, to come back to after signing in.
	Path string

	Version string // set by the Renderer

	signingIn bool
}

func (c *Chrome) chrome() *Chrome { return c }

// CountFrom sets the time that ages are counted from; zero leaves them out.
func (c *Chrome) CountFrom(now time.Time) { c.Now = now }

// Parts is the least that a page has.
func (c *Chrome) Parts() []string { return []string{PartBanners} }

// BannerKind says what needs a person.
type BannerKind string

// Kinds of banners.
const (
	BannerDead    BannerKind = "dead"    // notifications that were given up
	BannerRefused BannerKind = "refused" // deliveries refused lately
	BannerHeld    BannerKind = "held"    // runs that wait for approval
	BannerDisk    BannerKind = "disk"    // less space free than limits.free_space
	BannerBackup  BannerKind = "backup"  // the last backup failed
	BannerStore   BannerKind = "store"   // nothing can be written
	BannerPaused  BannerKind = "paused"  // runs or notifications are held back
)

// Banner is one line at the top of a page that says that something needs a
// person, and where to go. Its words come from its kind.
type Banner struct {
	Kind   BannerKind
	Count  int    // of notifications, deliveries or runs
	Detail string // one sentence more, as the reason of /readyz; may be ""
	// Href replaces the kind's own link; "" keeps it.
	Href string

	// Of BannerPaused: what is paused, since when and by whom, and whether this
	// person may let it go on.
	Work   ci.Work
	Pause  *ci.Pause
	Resume bool
}

// ResumePath is where the banner's button posts to, "" for none.
func (b Banner) ResumePath() string {
	switch {
	case b.Kind != BannerPaused || !b.Resume:
		return ""
	case b.Work == ci.WorkOutbox:
		return "/notifications/resume"
	}
	return "/runs/resume"
}

// ResumeText is what the banner's button says.
func (b Banner) ResumeText() string {
	if b.Work == ci.WorkOutbox {
		return "Send again"
	}
	return "Start runs again"
}

// link is an entry of a navigation or a list of tabs.
type link struct {
	Text, Href string
	Current    bool
}

// Nav is the main navigation.
func (c *Chrome) Nav() []link {
	list := []link{
		{"Overview", "/", c.Section == SectionOverview},
		{"Deliveries", "/deliveries", c.Section == SectionDeliveries},
		{"Notifications", "/notifications", c.Section == SectionNotifications},
		{"Decisions", "/decisions", c.Section == SectionDecisions},
		{"Setup", "/setup", c.Section == SectionSetup},
	}
	return list
}

// ShowSignIn reports whether the header offers to sign in: not on the page
// that does it.
func (c *Chrome) ShowSignIn() bool { return !c.signingIn }

// Tone is how much it matters: "bad" or "warn".
func (b Banner) Tone() string {
	switch b.Kind {
	case BannerStore, BannerDisk, BannerDead, BannerBackup:
		return "bad"
	}
	return "warn"
}

// Icon is its icon's name.
func (b Banner) Icon() string {
	if b.Kind == BannerHeld {
		return "held"
	}
	return b.Tone()
}

// Text says what is the matter.
func (b Banner) Text() string {
	switch b.Kind {
	case BannerDead:
		return counted(b.Count, "notification was", "notifications were") + " given up."
	case BannerRefused:
		return counted(b.Count, "delivery was", "deliveries were") + " refused lately."
	case BannerHeld:
		return counted(b.Count, "run waits", "runs wait") + " for approval."
	case BannerDisk:
		return "The disk is almost full: no run starts until there is room."
	case BannerBackup:
		return "The last backup failed and is tried again:"
	case BannerStore:
		return "Nothing can be written: deliveries are turned away for now, and providers will not all send them again."
	case BannerPaused:
		if b.Work == ci.WorkOutbox {
			return "Notifications are held back: nothing is sent until someone resumes."
		}
		return "Runs are held back: none that waits starts until someone resumes."
	}
	return string(b.Kind)
}

// Link is where to do something about it, nil for nowhere.
func (b Banner) Link() *link {
	l := map[BannerKind]link{
		BannerDead:    {Text: "Retry or discard", Href: "/notifications?state=dead"},
		BannerRefused: {Text: "What to do", Href: "/deliveries"},
		BannerHeld:    {Text: "Look at them", Href: "/"},
	}[b.Kind]
	if b.Href != "" {
		l.Href = b.Href
	}
	if l.Href == "" {
		return nil
	}
	if l.Text == "" {
		l.Text = "Look"
	}
	return &l
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return countText(n) + " " + many
}

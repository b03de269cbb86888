package web

import (
	"net/url"

	"docket/store/ci"
)

// Live parts of a project's page.
const (
	PartRuns = "runs"
	// PartDurations is the chart.
	PartDurations = "durations"
)

// Tabs of a project's page, as in ?tab=.
const (
	TabAll    = "" // everything
	TabBranch = "branch"
	TabTag    = "tag"
	TabPull   = "pull"
)

// ProjectPage is the page at /projects/{project}.
type ProjectPage struct {
	Chrome
	Name          string
	Repository    string
	RepositoryURL string // at the provider, "" if unknown
	Integration   string
	DefaultBranch string
	Public        bool

	// Tab and the filters, as the URL has them: ?tab=&branch=&state=&cursor=.
	Tab    string
	Branch string
	State  ci.State

	Heads     []Head
	Runs      []RunRow
	Next      string        // path and query of the older page, "" at the end
	Newest    string        // path and query of the first page, "" if this is it
	Missed    []MissedHead  // heads that no run is known of
	Known     *ci.HeadsBase // what heads are compared with, nil before the first comparison
	Durations []Bar         // the oldest first
	Schedules []Schedule
	Badge     Badge
	Form      *RunForm // nil: this person may start nothing
}

func (*ProjectPage) template() string { return "project" }

// Parts names the live parts. A page that is not the newest one
// (Newest != "") is better left without a Stream.
func (*ProjectPage) Parts() []string {
	return []string{PartBanners, PartMissed, PartDurations, PartRuns}
}

// Badge is what to copy into a README.
type Badge struct {
	ImageURL string // absolute; "" hides the section
	LinkURL  string // absolute, of the project's page
	// Open says that the badge needs no token, as for a public project.
	Open bool
}

// Fields of the form, as POST /projects/{project}/runs gets them. An input is
// FieldInput and its name.
const (
	FieldKey     = "key"
	FieldRefKind = "kind" // "branch" or "tag"
	FieldRef     = "ref"
	FieldCommit  = "commit"
	FieldReason  = "reason"
	FieldInput   = "input."
	// FieldNewKey is sent by the button that a conflict offers; it is to be
	// taken in place of FieldKey.
	FieldNewKey = "newkey"
)

// RunForm is the form that starts a run. It carries its idempotency key from
// the moment it is rendered. A form that was refused comes back as it was
// sent, with its errors, the same key, and Open set.
type RunForm struct {
	Action  string // path to post to
	Key     string
	RefKind string // "branch" (default) or "tag"
	Ref     string
	Commit  string
	Reason  string
	Inputs  []FormInput
	Open    bool

	Error       string // about the whole
	RefError    string // about branch or tag
	CommitError string
	ReasonError string
	// ConflictRun is the run that was made with this key from other values.
	// NewKey then starts another run with the values in the form.
	ConflictRun string
	NewKey      string
}

// FormInput is one declared input with the value that the form shows.
type FormInput struct {
	Name    string
	Value   string
	Default string
	Options []string // empty: free text
	Error   string
}

// NewFormInputs makes inputs with their defaults.
func NewFormInputs(inputs []ci.Input) []FormInput {
	list := make([]FormInput, 0, len(inputs))
	for _, in := range inputs {
		list = append(list, FormInput{Name: in.Name, Value: in.Default, Default: in.Default, Options: in.Options})
	}
	return list
}

// Tabs are the kinds of runs.
func (p *ProjectPage) Tabs() []link {
	return tabs(projectPath(p.Name), "tab", p.Tab,
		[2]string{TabAll, "All"}, [2]string{TabBranch, "Branches"}, [2]string{TabTag, "Tags"}, [2]string{TabPull, "Pull requests"})
}

// States are the choices of the filter.
func (*ProjectPage) States() []ci.State { return ci.States }

// Filtered reports whether an empty list may be so because of a filter.
func (p *ProjectPage) Filtered() bool { return p.Tab != "" || p.Branch != "" || p.State != "" }

// List and HeadList give rows the time that their ages are counted from.
func (p *ProjectPage) List() runList                  { return runList{p.Runs, p.Now} }
func (p *ProjectPage) HeadList(heads []Head) headList { return headList{heads, p.Now} }

// Markdown is the badge for a README.
func (b Badge) Markdown() string { return "[![docket](" + b.ImageURL + ")](" + b.LinkURL + ")" }

// Src is the image's path on this server.
func (b Badge) Src() string {
	u, err := url.Parse(b.ImageURL)
	if err != nil {
		return ""
	}
	return u.RequestURI()
}

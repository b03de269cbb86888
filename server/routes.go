package server

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"docket/store/ci"
	"docket/web"
)

// route is one line of the outside: where, who, what.
type route struct {
	method string
	path   string
	parts  []string // the parts that have it; none: every listener has it
	need   ci.Role  // "": open to all
	public bool     // also open to all if :project, or that of :run, is public
	unless string   // listeners of this part do not have it
	page   bool     // for browsers: sessions, not tokens; see pageAuth
	handle func(*Server, echo.Context) error
}

func (r *route) servedBy(parts []string) bool {
	if r.unless != "" && served(r.unless, parts) {
		return false
	}
	if len(r.parts) == 0 || len(parts) == 0 {
		return true
	}
	return slices.ContainsFunc(r.parts, func(p string) bool { return slices.Contains(parts, p) })
}

// served reports whether a listener of parts serves one of them.
func served(part string, parts []string) bool {
	return len(parts) == 0 || slices.Contains(parts, part)
}

// routes is every path that docket answers, with the role that it needs.
func routes() []route {
	list := []route{
		{path: "/healthz", handle: (*Server).healthz},
		{path: "/", parts: []string{PartAPI}, unless: PartUI, handle: (*Server).index},
		{path: "/readyz", parts: []string{PartAPI}, handle: (*Server).readyz},
		{path: "/metrics", parts: []string{PartAPI}, handle: (*Server).serveMetrics},
		// Every method: an unknown integration is a 404 before a wrong method is a 405.
		{method: echo.RouteNotFound, path: "/hooks/:integration", parts: []string{PartHooks}, handle: (*Server).hook},
	}
	api := func(method, path string, need ci.Role, handle func(*Server, echo.Context) error) {
		list = append(list, route{method: method, path: apiPrefix + path, parts: []string{PartAPI}, need: need, handle: handle})
	}
	get, post := http.MethodGet, http.MethodPost

	api(get, "/runs", ci.Viewer, (*Server).listRuns)
	api(get, "/runs/:run", ci.Viewer, (*Server).getRun)
	api(get, "/runs/:run/logs", ci.Viewer, (*Server).getLogs)
	api(post, "/projects/:project/runs", ci.Operator, (*Server).startRun)
	api(post, "/runs/:run/cancel", ci.Operator, (*Server).cancelRun)
	api(post, "/runs/:run/rerun", ci.Operator, (*Server).rerun)
	api(post, "/runs/:run/approve", ci.Operator, (*Server).approveRun)

	api(get, "/projects", ci.Viewer, (*Server).listProjects)
	api(get, "/projects/:project", ci.Viewer, (*Server).getProject)
	api(get, "/projects/:project/badge.svg", ci.Viewer, (*Server).badge)
	list[len(list)-1].public = true
	api(post, "/projects/:project/repin", ci.Admin, (*Server).repinProject)

	api(get, "/receipts", ci.Viewer, (*Server).listReceipts)
	api(get, "/receipts/:integration/:installation/:delivery", ci.Viewer, (*Server).getReceipt)
	api(get, "/receipts/:integration/:installation/:delivery/body", ci.Viewer, (*Server).getReceiptBody)
	api(get, "/receipts/:integration/:installation/:delivery/explain", ci.Viewer, (*Server).explainReceipt)
	api(post, "/receipts/:integration/:installation/:delivery/replay", ci.Operator, (*Server).replayReceipt)
	api(get, "/refusals", ci.Viewer, (*Server).listRefusals)

	api(get, "/outbox", ci.Viewer, (*Server).listOutbox)
	api(get, "/outbox/:entry", ci.Viewer, (*Server).getEntry)
	api(post, "/outbox/:entry/retry", ci.Operator, (*Server).retryEntry)
	api(post, "/outbox/:entry/discard", ci.Operator, (*Server).discardEntry)

	api(get, "/paused", ci.Viewer, (*Server).getPauses)
	api(post, "/runs/pause", ci.Operator, (*Server).pauseRuns)
	api(post, "/runs/resume", ci.Operator, (*Server).resumeRuns)
	api(post, "/outbox/pause", ci.Operator, (*Server).pauseOutbox)
	api(post, "/outbox/resume", ci.Operator, (*Server).resumeOutbox)

	api(get, "/recoveries", ci.Viewer, (*Server).listRecoveries)
	api(post, "/recover", ci.Operator, (*Server).recoverNow)
	api(get, "/gaps", ci.Viewer, (*Server).listGaps)
	api(get, "/heads", ci.Viewer, (*Server).listHeads)
	api(post, "/heads/start", ci.Operator, (*Server).startHead)

	api(get, "/decisions", ci.Viewer, (*Server).listDecisions)

	api(get, "/tokens", ci.Admin, (*Server).listTokens)
	api(post, "/tokens", ci.Admin, (*Server).createToken)
	api(http.MethodDelete, "/tokens/:token", ci.Admin, (*Server).revokeToken)
	api(get, "/users", ci.Admin, (*Server).listUsers)
	api(post, "/users", ci.Admin, (*Server).createUser)
	api(http.MethodDelete, "/users/:user", ci.Admin, (*Server).removeUser)
	api(http.MethodPut, "/users/:user/password", ci.Admin, (*Server).changePassword)
	api(http.MethodPut, "/users/:user/role", ci.Admin, (*Server).changeRole)
	api(post, "/login-links", ci.Admin, (*Server).createLoginLink)
	api(post, "/backup", ci.Admin, (*Server).backup)
	api(post, "/verify", ci.Admin, (*Server).verify)
	api(get, "/state", ci.Viewer, (*Server).getState)
	api(get, "/log-level", ci.Viewer, (*Server).getLogLevel)
	api(http.MethodPut, "/log-level", ci.Admin, (*Server).putLogLevel)
	api(post, "/reload", ci.Admin, (*Server).reloadConfig)

	page := func(method, path string, need ci.Role, handle func(*Server, echo.Context) error) {
		list = append(list, route{method: method, path: path, parts: []string{PartUI}, need: need, page: true, handle: handle})
	}
	public := func(path string, handle func(*Server, echo.Context) error) {
		page("", path, ci.Viewer, handle)
		list[len(list)-1].public = true
	}
	page("", "/", ci.Viewer, (*Server).overview)
	public("/projects/:project", (*Server).projectPage)
	public("/projects/:project/badge.svg", (*Server).badge)
	page("", "/projects/:project/runs", ci.Viewer, (*Server).toProject)
	page(post, "/projects/:project/runs", ci.Operator, (*Server).startByForm)
	page(post, "/projects/:project/heads/start", ci.Operator, (*Server).startHeadByForm)
	public("/runs/:run", (*Server).runPage)
	public("/runs/:run/logs", (*Server).rawLog)
	page(post, "/runs/:run/cancel", ci.Operator, (*Server).cancelByForm)
	page(post, "/runs/:run/rerun", ci.Operator, (*Server).rerunByForm)
	page(post, "/runs/:run/approve", ci.Operator, (*Server).approveByForm)
	page("", "/deliveries", ci.Viewer, (*Server).deliveriesPage)
	page("", "/deliveries/:integration/:installation/:delivery", ci.Viewer, (*Server).deliveryPage)
	page("", "/deliveries/:integration/:installation/:delivery/body", ci.Viewer, (*Server).getReceiptBody)
	page(post, "/deliveries/:integration/:installation/:delivery/replay", ci.Operator, (*Server).replayByForm)
	page("", "/notifications", ci.Viewer, (*Server).notificationsPage)
	page(post, "/notifications/:entry/retry", ci.Operator, (*Server).retryByForm)
	page(post, "/notifications/:entry/discard", ci.Operator, (*Server).discardByForm)
	page(post, "/runs/pause", ci.Operator, (*Server).pauseRunsByForm)
	page(post, "/runs/resume", ci.Operator, (*Server).resumeRunsByForm)
	page(post, "/notifications/pause", ci.Operator, (*Server).pauseOutboxByForm)
	page(post, "/notifications/resume", ci.Operator, (*Server).resumeOutboxByForm)
	page("", "/decisions", ci.Viewer, (*Server).decisionsPage)
	page("", "/setup", ci.Viewer, (*Server).setupPage)
	page("", web.AssetPrefix+"*", "", (*Server).assets)
	page("", loginPath, "", (*Server).loginPage)
	page(post, loginPath, "", (*Server).login)
	page("", linkPath, "", (*Server).linkPage)
	page(post, linkPath, "", (*Server).loginByLink)
	page(post, "/logout", "", (*Server).logout)
	page(post, "/logout-everywhere", ci.Viewer, (*Server).logoutEverywhere)

	for _, r := range list {
		if r.method == "" {
			r.method = http.MethodHead // what probes of load balancers like to send
			list = append(list, r)
		}
	}
	for i := range list {
		if list[i].method == "" {
			list[i].method = get
		}
	}
	return list
}

// apiPrefix is where the API begins.
const apiPrefix = "/api/v1"

// index says what this is to someone who opens the address.
func (s *Server) index(c echo.Context) error {
	return c.String(http.StatusOK, "docket "+s.version+"\n\n"+
		"A continuous integration server: every delivery is on disk before it is answered.\n\n"+
		"  webhooks   POST /hooks/INTEGRATION\n"+
		"  API        "+apiPrefix+"/runs   (Authorization: Bearer TOKEN; make one with `docket token create`)\n"+
		"  health     /healthz  /readyz  /metrics\n")
}

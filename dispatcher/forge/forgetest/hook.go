package forgetest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Hook is a webhook: the App's, or a repository's own.
type Hook struct {
	ID         int64
	Repository string // owner/name; "" for the App's
	URL        string // as it is configured and shown
	// Target is where deliveries really go; "" is URL.
	Target string
	Secret string
	Active bool
}

// delivery is one attempt.
type delivery struct {
	id            int64
	guid          string
	hook          int64 // 0 for the App's
	event, action string
	status        string
	code          int
	at            time.Time
	again         bool
	installation  int64
	repository    int64
	body          []byte
}

// Attempt is one attempt to deliver, as GitHub lists it.
type Attempt struct {
	ID         int64
	GUID       string
	Event      string
	Status     string
	Code       int
	Redelivery bool
}

// SetAppHook sets the App's webhook.
func (g *GitHub) SetAppHook(h Hook) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h.ID, h.Repository, h.Active = 0, "", true
	g.appHook = &h
}

// AddHook adds an active webhook of a repository and returns its id.
func (g *GitHub) AddHook(h Hook) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	h.ID, h.Active = g.id(), true
	g.hooks = append(g.hooks, &h)
	return h.ID
}

// SwitchHook switches a repository's webhook on or off.
func (g *GitHub) SwitchHook(id int64, active bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range g.hooks {
		if h.ID == id {
			h.Active = active
		}
	}
}

// Retarget changes where a webhook's deliveries really go; hook 0 is the App's.
func (g *GitHub) Retarget(hook int64, target string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if h := g.hook(hook); h != nil {
		h.Target = target
	}
}

// hook finds a webhook; 0 is the App's. The caller holds mu.
func (g *GitHub) hook(id int64) *Hook {
	if id == 0 {
		return g.appHook
	}
	for _, h := range g.hooks {
		if h.ID == id {
			return h
		}
	}
	return nil
}

// Deliver posts an event to a webhook (0: the App's) and records how it went,
// as GitHub does: whoever does not answer with 2xx has not got it. A webhook
// that is switched off gets nothing and nothing is recorded.
func (g *GitHub) Deliver(hook int64, event string, payload []byte) Attempt {
	g.t.Helper()
	g.mu.Lock()
	h := g.hook(hook)
	guid := newGUID()
	g.mu.Unlock()
	if h == nil {
		g.t.Errorf("forgetest: there is no webhook %d", hook)
		return Attempt{}
	}
	return g.deliver(hook, guid, event, payload, false)
}

// newGUID returns an id as GitHub makes them: a version-1 UUID.
func newGUID() string {
	b := randomBytes(16)
	b[6], b[8] = b[6]&0x0f|0x10, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (g *GitHub) deliver(hook int64, guid, event string, payload []byte, again bool) Attempt {
	g.mu.Lock()
	h := *g.hook(hook)
	g.mu.Unlock()
	if !h.Active {
		return Attempt{}
	}
	var about struct {
		Action       string
		Installation struct{ ID int64 }
		Repository   struct{ ID int64 }
	}
	_ = json.Unmarshal(payload, &about)
	d := &delivery{
		guid: guid, hook: hook, event: event, action: about.Action, again: again, body: payload,
		installation: about.Installation.ID, repository: about.Repository.ID,
	}
	d.status, d.code = post(h, d)
	g.mu.Lock()
	defer g.mu.Unlock()
	d.id, d.at = g.id(), g.now()
	g.deliveries = append(g.deliveries, d)
	return d.attempt()
}

func (d *delivery) attempt() Attempt {
	return Attempt{d.id, d.guid, d.event, d.status, d.code, d.again}
}

// post makes the request of a delivery.
func post(h Hook, d *delivery) (status string, code int) {
	target := h.Target
	if target == "" {
		target = h.URL
	}
	req, err := http.NewRequest(http.MethodPost, target, bytes.NewReader(d.body))
	if err != nil {
		return "failed to connect to host", http.StatusBadGateway
	}
	sum := hmac.New(sha256.New, []byte(h.Secret))
	sum.Write(d.body)
	for k, v := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "GitHub-Hookshot/0000000",
		"X-GitHub-Event": d.event, "X-GitHub-Delivery": d.guid, "X-GitHub-Hook-ID": strconv.FormatInt(h.ID, 10),
		"X-Hub-Signature-256": "sha256=" + hex.EncodeToString(sum.Sum(nil)),
	} {
		req.Header.Set(k, v)
	}
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return "failed to connect to host", http.StatusBadGateway
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode/100 == 2 {
		return "OK", resp.StatusCode
	}
	return fmt.Sprintf("Invalid HTTP Response: %d", resp.StatusCode), resp.StatusCode
}

// Attempts returns the attempts of a webhook (0: the App's), oldest first.
func (g *GitHub) Attempts(hook int64) (list []Attempt) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, d := range g.deliveries {
		if d.hook == hook {
			list = append(list, d.attempt())
		}
	}
	return list
}

// Forget makes GitHub forget the attempts before a time of its own, as it
// does after some days.
func (g *GitHub) Forget(before time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deliveries = slices.DeleteFunc(g.deliveries, func(d *delivery) bool { return d.at.Before(before) })
}

func (g *GitHub) getAppHook(*http.Request, caller, *repository) answer {
	if g.appHook == nil {
		return answer{status: http.StatusOK, body: obj{"url": "", "content_type": "json", "insecure_ssl": "0"}}
	}
	return answer{status: http.StatusOK, body: obj{"url": g.appHook.URL, "content_type": "json", "insecure_ssl": "0", "secret": "********"}}
}

func (g *GitHub) listHooks(r *http.Request, _ caller, repo *repository) answer {
	all := []obj{}
	for _, h := range g.hooks {
		if !strings.EqualFold(h.Repository, repo.name) {
			continue
		}
		last := obj{"code": nil, "status": "unused", "message": nil}
		for _, d := range g.deliveries {
			if d.hook == h.ID {
				last = obj{"code": d.code, "status": "active", "message": d.status}
			}
		}
		all = append(all, obj{
			"id": h.ID, "name": "web", "active": h.Active, "events": []string{"push"}, "last_response": last,
			"config": obj{"url": h.URL, "content_type": "json", "insecure_ssl": "0", "secret": "********"},
		})
	}
	part, next := page(r, all)
	return answer{http.StatusOK, part, next}
}

// pathHook is the webhook that a path names; the App's where it names none.
func (g *GitHub) pathHook(r *http.Request, repo *repository) (id int64, ok bool) {
	id, _ = strconv.ParseInt(r.PathValue("hook"), 10, 64)
	h := g.hook(id)
	return id, h != nil && (repo == nil || strings.EqualFold(h.Repository, repo.name))
}

// listDeliveries lists attempts newest first. Its pages are told apart by a
// cursor, which is the id that the next one begins below.
func (g *GitHub) listDeliveries(r *http.Request, _ caller, repo *repository) answer {
	hook, ok := g.pathHook(r, repo)
	if !ok {
		return notFound
	}
	q := r.URL.Query()
	size, _ := strconv.Atoi(q.Get("per_page"))
	if size < 1 || size > 100 {
		size = 30
	}
	below := int64(1) << 62
	if c, ok := strings.CutPrefix(q.Get("cursor"), "v1_"); ok {
		below, _ = strconv.ParseInt(c, 10, 64)
	}
	list, next := []obj{}, ""
	for _, d := range slices.Backward(g.deliveries) {
		if d.hook != hook || d.id >= below {
			continue
		}
		if len(list) == size {
			q.Set("cursor", fmt.Sprintf("v1_%d", below))
			next = q.Encode()
			break
		}
		below = d.id
		list = append(list, d.show())
	}
	return answer{http.StatusOK, list, next}
}

func (d *delivery) show() obj {
	out := obj{
		"id": d.id, "guid": d.guid, "delivered_at": d.at.UTC().Format(time.RFC3339), "redelivery": d.again, "duration": 0.1,
		"status": d.status, "status_code": d.code, "event": d.event, "action": nil, "installation_id": nil, "repository_id": nil,
	}
	if d.action != "" {
		out["action"] = d.action
	}
	if d.installation != 0 {
		out["installation_id"] = d.installation
	}
	if d.repository != 0 {
		out["repository_id"] = d.repository
	}
	return out
}

// redeliver delivers an attempt's payload again, under the same GUID, after it
// has said that it will.
func (g *GitHub) redeliver(r *http.Request, _ caller, repo *repository) answer {
	hook, ok := g.pathHook(r, repo)
	id, _ := strconv.ParseInt(r.PathValue("delivery"), 10, 64)
	i := slices.IndexFunc(g.deliveries, func(d *delivery) bool { return d.id == id && d.hook == hook })
	if !ok || i < 0 {
		return notFound
	}
	d := *g.deliveries[i]
	g.delivering.Go(func() { g.deliver(hook, d.guid, d.event, d.body, true) })
	return answer{status: http.StatusAccepted, body: obj{}}
}

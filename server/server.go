// Package server answers HTTP: webhooks, the API, health and metrics. It
// writes down what is asked and reads what is on record; it starts nothing
// and tells nobody. All it knows for sure is in the store, so several servers
// over one store give one answer.
package server

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"docket/store"
	"docket/store/ci"
	"docket/web"
)

// The parts that a listener can serve.
const (
	PartHooks = "hooks"
	PartAPI   = "api"
	PartUI    = "ui"
)

// Options are what a Server stands on. Store and Config are needed.
type Options struct {
	Store *store.Store
	// Config returns the configuration in force; it is asked once per request.
	Config func() *ci.Config
	Log    *slog.Logger     // default: discards
	Level  *slog.LevelVar   // of Log; nil: it cannot be changed
	Now    func() time.Time // default time.Now
	// Ready returns sentences about why the rest of docket is not ready; none
	// means it is. It may be nil.
	Ready func() []string
	// Registry gets this server's metrics; nil makes one with Go's own and
	// the process' metrics in it. A registry holds one server's metrics only.
	Registry *prometheus.Registry
	Version  string
	// Reload reads the configuration again for POST /api/v1/reload. Nil: that
	// call says that it is not possible here.
	Reload func(context.Context) error
	// Recover compares integrations with their providers now, for
	// POST /api/v1/recover; see scheduler.Recover. Nil: it is not possible here.
	Recover func(ctx context.Context, integration string, since time.Duration, by ci.By) ([]ci.Recovery, error)
	// Backups says how the backups go that docket makes by itself; nil: it makes none.
	Backups func() BackupStatus
	// Traces is told of deliveries and requests by hand; nil: nobody is.
	Traces *Traces
	// Pages draws the pages; nil makes one for Version.
	Pages *web.Renderer
	// Connections is how many a listener takes at most, so that streams leave
	// some; 0: it is not known.
	Connections int
}

// Server holds what the handlers share. Its memory decides nothing that is on
// record: it keeps metrics, recent refusals for people to look at, the last
// readiness, and who tried passwords lately.
type Server struct {
	store    *store.Store
	config   func() *ci.Config
	log      *slog.Logger
	level    *slog.LevelVar
	now      func() time.Time
	ready    func() []string
	reload   func(context.Context) error
	recover  func(ctx context.Context, integration string, since time.Duration, by ci.By) ([]ci.Recovery, error)
	registry *prometheus.Registry
	metrics  *metrics
	version  string
	instance string // of this process, see InstanceHeader
	pages    *web.Renderer
	backups  func() BackupStatus
	traces   *Traces   // nil: none
	began    time.Time // when refusals began to be kept

	refusals  refusals
	door      *door
	failures  *failures
	rooms     rooms
	fullRooms seldom // lines about bodies
	fullSeats seldom // lines about streams
	passwords *passwords
	bodies    sync.Pool // *[]byte, see readBody
	probe     probe

	openSeats, signedSeats *seats        // of streams
	strangers              chan struct{} // has room for one, see inTurn

	heartbeat time.Duration // longest silence on a followed log
	poll      time.Duration // how often a follower looks at its run
}

// New returns a Server. It starts nothing.
func New(o Options) *Server {
	s := &Server{
		strangers: make(chan struct{}, 1),
		store:     o.Store,
		config:    o.Config,
		log:       o.Log,
		level:     o.Level,
		now:       o.Now,
		ready:     o.Ready,
		reload:    o.Reload,
		recover:   o.Recover,
		registry:  o.Registry,
		version:   o.Version,
		instance:  rand.Text(),
		pages:     o.Pages,
		backups:   o.Backups,
		traces:    o.Traces,
		door:      newDoor(),
		failures:  newFailures(),
		passwords: newPasswords(),
		heartbeat: 15 * time.Second,
		poll:      time.Second,
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.registry == nil {
		s.registry = newRegistry()
	}
	s.began = s.now()
	if s.pages == nil {
		s.pages = web.New(s.version)
	}
	s.metrics = newMetrics(s.registry, s.store, s.version, s.now)
	s.openSeats = newSeats(openSeats, openSeatsEach, o.Connections, s.metrics, "open")
	s.signedSeats = newSeats(signedSeats, signedSeatsEach, o.Connections, s.metrics, "signed_in")
	if s.backups != nil {
		registerBackups(s.registry, s.backups)
	}
	return s
}

// Handler returns the handler of a listener that serves the named parts; none
// means all of them. /healthz is always there.
func (s *Server) Handler(parts ...string) http.Handler { return s.handler(parts, nil) }

// AdminHandler returns the API as it is on the admin socket: whoever reaches
// it is an admin, because the socket's file mode let him.
func (s *Server) AdminHandler() http.Handler {
	return s.handler([]string{PartAPI}, &principal{
		by:   ci.By{Kind: ci.ByToken, Name: "admin socket"},
		role: ci.Admin,
	})
}

func (s *Server) handler(parts []string, everyone *principal) http.Handler {
	e := echo.New()
	e.HTTPErrorHandler = s.handleError
	if served(PartUI, parts) {
		e.HTTPErrorHandler = s.handlePageError
	}
	for _, r := range routes() {
		if r.servedBy(parts) {
			e.Add(r.method, r.path, s.bind(r, everyone))
		}
	}
	return &handler{server: s, echo: e}
}

// bind puts what a route needs around its handler: who may, a panic that
// becomes an answer, the time it took.
func (s *Server) bind(r route, everyone *principal) echo.HandlerFunc {
	took := s.metrics.requests.MustCurryWith(prometheus.Labels{"route": r.path})
	handle := func(c echo.Context) error { return r.handle(s, c) }
	fail := s.handleError
	if r.page {
		handle, fail = s.openPage(r, handle), s.handlePageError
	}
	run := func(c echo.Context) (err error) {
		defer func() {
			if v := recover(); v != nil {
				if v == http.ErrAbortHandler {
					panic(v)
				}
				err = &panicked{value: v, stack: debug.Stack()}
			}
		}()
		if everyone != nil {
			setPrincipal(c, *everyone)
		} else if err := s.admit(c, r); err != nil {
			return err
		}
		return handle(c)
	}
	return func(c echo.Context) error {
		start := s.now()
		if err := run(c); err != nil {
			fail(err, c)
		}
		if c.Response().Header().Get(echo.HeaderContentType) != eventStream {
			took.WithLabelValues(strconv.Itoa(c.Response().Status)).Observe(s.now().Sub(start).Seconds())
		}
		return nil
	}
}

// openPage puts around a page what holds for all of them: the headers, and who
// may see it.
func (s *Server) openPage(r route, handle echo.HandlerFunc) echo.HandlerFunc {
	closed, open := s.pageAuth(r.need)(handle), s.pageAuth("")(handle)
	return func(c echo.Context) error {
		pageHeaders(c)
		if r.public && s.isPublic(c) {
			return open(c)
		}
		return closed(c)
	}
}

// handler is one listener's door: what holds for every request, then echo.
type handler struct {
	server *Server
	echo   *echo.Echo
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(echo.HeaderXContentTypeOptions, "nosniff")
	// With RawPath always set, routes match and parameters come as they were
	// sent: an escaped slash in a delivery id never splits a path.
	r.URL.RawPath = r.URL.EscapedPath()
	h.echo.ServeHTTP(w, r)
}

// Time-outs of every listener.
const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = 60 * time.Second // for the header and the body
	writeTimeout  = 2 * time.Minute  // for an answer that is not a stream
	idleTimeout   = 120 * time.Second
	chunkTimeout  = 30 * time.Second // for each piece of a stream
)

// NewHTTPServer returns a server for h with docket's time-outs. Its Shutdown
// also ends the streams that it carries, which would else go on.
func NewHTTPServer(h http.Handler) *http.Server {
	q := &quit{c: make(chan struct{})}
	base := context.WithValue(context.Background(), quitKey{}, q)
	srv := &http.Server{
		Handler:           endChunked(h),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return base },
	}
	srv.RegisterOnShutdown(q.now)
	return srv
}

// endChunked ends the connection after a request that came in chunks. It may
// have had a length besides, which net/http drops; a proxy that went by the
// length would see another request where this one ends (RFC 9112, 6.1).
func endChunked(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// EndStreams ends the streams that a server from NewHTTPServer carries, and
// those to come, while it goes on with everything else.
func EndStreams(srv *http.Server) {
	if q, ok := srv.BaseContext(nil).Value(quitKey{}).(*quit); ok {
		q.now()
	}
}

type quitKey struct{}

// quit tells the streams of a server to end.
type quit struct {
	once sync.Once
	c    chan struct{}
}

func (q *quit) now() { q.once.Do(func() { close(q.c) }) }

// quitting returns a channel that is closed when the streams are to end. It
// is nil, and so never ready, for a listener that NewHTTPServer did not make.
func quitting(ctx context.Context) <-chan struct{} {
	if q, ok := ctx.Value(quitKey{}).(*quit); ok {
		return q.c
	}
	return nil
}

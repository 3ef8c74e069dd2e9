// Package rest is Caisson's HTTP API under /v1, and the OpenAPI document that describes it at /openapi.json.
//
//	api, err := rest.New(host, rest.Options{Sessions: sessions, Agents: agents})
//	mux.Handle("/v1/", api)
//	mux.Handle("/openapi.json", api)
//
// Whoever serves it puts the caller into each request's context ([auth.With]) and limits connections. One table lists
// the routes; requests are dispatched by it and the document is made from it, so that neither can have a route that the
// other lacks. The document is served as it is in the file openapi.json, but for its paths.
//
// # What happens to a call
//
// A call that fails is no failed request: the status is 200, and the record says what happened. A request that is wrong
// is refused with a status from 400 to 499. If the server itself failed, the status is 500, and the problem has an id,
// under which the log has the cause.
//
// Calls and batches end with their request: a client that goes away cancels them. Runs go on without their client. A
// batch that has to wait for an output or an approval becomes a run.
//
// # Who sees what
//
// Agents, records and runs belong to a tenant, and are not found by callers of another one. Outputs for a run come from
// the token that made it, and so does its cancellation, unless the token has the scope admin; approvals come from any
// token of the tenant with the scope approve. Context values come from the token and never from a request.
package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/internal/sampling"
	"github.com/caisson-run/caisson/server/internal/problem"
	"github.com/caisson-run/caisson/server/sessions"
)

// Options configures [New]. Sessions is required; of the numbers, zero is the default and negative an error.
type Options struct {
	Sessions *sessions.Sessions
	// Agents holds the agents of all tenants. If nil, there are none, and none can be stored.
	Agents *agents.Store
	// Logger gets the causes of failures that callers see as an id, or a sample of many. If nil, they are lost.
	Logger *slog.Logger
	Runs   RunOptions
	// Body bounds a request's body in bytes: 16 MiB, as that of package server.
	Body int64
	// Heartbeat is the longest silence of a stream of events: 15 s.
	Heartbeat time.Duration
	// Keys bounds the answers that are kept for repeated requests (Idempotency-Key).
	Keys KeyOptions
}

// RunOptions bounds the runs that are kept in memory. A zero field means the default after the colon.
type RunOptions struct {
	// PerTenant is the maximum number of runs of a tenant: 200. One more removes the one that ended first; if none has
	// ended, it is refused.
	PerTenant int
	// Bytes bounds the requests, events and results of a tenant's runs, and the answers that are submitted to them, in the
	// same way: 64 MiB. Until a run has ended, each of its calls counts as 4 KiB more.
	Bytes int
	// Keep is the time for which a run is kept after it has ended: an hour.
	Keep time.Duration
	// Wait is the maximum time for which a run waits for an output or an approval: 24 hours, or less if the host's batches
	// expire before.
	Wait time.Duration
	// EventBytes bounds the events of a run that can be read again: 1 MiB.
	EventBytes int
}

// KeyOptions bounds the store of answers. A zero field means the default after the colon.
type KeyOptions struct {
	PerTenant int           // keys of a tenant; the oldest is forgotten first: 10,000
	Bytes     int           // of the answers of a tenant; the oldest is forgotten first: 32 MiB
	Keep      time.Duration // how long a key is known: 24 hours
}

// API serves the routes. Get one from [New], and close it after use. It is safe for concurrent use.
type API struct {
	host     *caisson.Host
	options  Options
	mux      *http.ServeMux
	document []byte
	runs     *runs
	keys     *keys
	making   sync.Map // by memory.Sharer: a semaphore for those whose answers are made

	mu      sync.Mutex
	stopped bool
	// lastSaves is when the runs must have been saved, in nanoseconds since 1970; zero until the API is closed.
	lastSaves atomic.Int64
	stopping  chan struct{}  // closed when stopped is set
	working   sync.WaitGroup // the batches of runs
	ending    sync.WaitGroup // the sessions of runs that have ended, and sweep
}

// New returns the API of a host. The host and the sessions must be closed after the API.
func New(host *caisson.Host, options Options) (*API, error) {
	if host == nil || options.Sessions == nil {
		return nil, errors.New("rest: the host and Options.Sessions are required")
	}
	if err := options.complete(); err != nil {
		return nil, fmt.Errorf("rest: %w", err)
	}
	a := &API{
		host: host, options: options, mux: http.NewServeMux(), stopping: make(chan struct{}),
		keys: &keys{options: options.Keys, byTenant: map[string]*keysOf{}},
	}
	a.runs = &runs{api: a, byTenant: map[string]*runsOf{}}
	routes := a.routes()
	document, err := describe(routes)
	if err != nil {
		return nil, fmt.Errorf("rest: %w", err)
	}
	a.document = document
	for path, methods := range byPath(routes) {
		a.mux.Handle(path, a.dispatch(methods))
	}
	a.ending.Go(a.sweep)
	a.ending.Go(a.keepRuns)
	a.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		const detail = "there is no such path; /openapi.json lists them"
		problem.Write(w, problem.Problem{Status: http.StatusNotFound, Detail: detail})
	})
	return a, nil
}

// complete fills in the defaults.
func (o *Options) complete() error {
	durations := map[string]struct {
		value    *time.Duration
		fallback time.Duration
	}{
		"Heartbeat": {&o.Heartbeat, 15 * time.Second},
		"Runs.Keep": {&o.Runs.Keep, time.Hour}, "Runs.Wait": {&o.Runs.Wait, 24 * time.Hour},
		"Keys.Keep": {&o.Keys.Keep, 24 * time.Hour},
	}
	for name, d := range durations {
		if *d.value < 0 {
			return fmt.Errorf("the option %s is negative", name)
		}
		if *d.value == 0 {
			*d.value = d.fallback
		}
	}
	numbers := map[string]struct {
		value    *int
		fallback int
	}{
		"Runs.PerTenant": {&o.Runs.PerTenant, 200}, "Runs.Bytes": {&o.Runs.Bytes, 64 << 20},
		"Runs.EventBytes": {&o.Runs.EventBytes, 1 << 20},
		"Keys.PerTenant":  {&o.Keys.PerTenant, 10_000}, "Keys.Bytes": {&o.Keys.Bytes, 32 << 20},
	}
	for name, n := range numbers {
		if *n.value < 0 {
			return fmt.Errorf("the option %s is negative", name)
		}
		if *n.value == 0 {
			*n.value = n.fallback
		}
	}
	if o.Body < 0 {
		return errors.New("the option Body is negative")
	}
	if o.Body == 0 {
		o.Body = 16 << 20
	}
	o.Logger = sampling.Logger(o.Logger)
	return nil
}

// sweepPause is the longest time between two searches for runs and keys whose time is over. Their tenant may make no
// other request.
const sweepPause = time.Minute

// sweep ends runs that have waited too long, and forgets runs and keys that are not kept any longer, until the API
// stops.
func (a *API) sweep() {
	due := time.NewTicker(min(sweepPause, a.options.Runs.Keep, a.options.Runs.Wait, a.options.Keys.Keep))
	defer due.Stop()
	for {
		select {
		case <-due.C:
			a.runs.sweep()
			a.keys.sweep()
		case <-a.stopping:
			return
		}
	}
}

// ServeHTTP serves one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// begin counts a batch of a run, unless the API is stopped. done must be called when it has ended.
func (a *API) begin() (done func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		return nil, false
	}
	a.working.Add(1)
	return a.working.Done, true
}

func (a *API) isStopped() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stopped
}

// stop refuses new calls, batches and runs from now on, and ends streams of events that only wait. What is under way
// goes on, and can be read.
func (a *API) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.stopped {
		a.stopped = true
		close(a.stopping)
	}
}

// Close stops the API and waits for the runs that are under way. When ctx ends, they are cancelled, and waited for; the
// error says so. Requests under way are for the HTTP server to wait for.
func (a *API) Close(ctx context.Context) error {
	a.stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.working.Wait()
	}()
	cancelled := 0
	select {
	case <-ended:
	case <-ctx.Done():
		cancelled = a.runs.cancelAll()
		<-ended
	}
	a.lastSaves.Store(time.Now().Add(storeTime).UnixNano()) // of all runs together
	a.runs.clear()
	a.ending.Wait()
	if cancelled > 0 {
		return fmt.Errorf("rest: %d runs were cancelled: %w", cancelled, ctx.Err())
	}
	return nil
}

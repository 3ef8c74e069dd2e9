package rest

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caisson-run/caisson/executor"
)

// runs are the runs of all tenants, in memory.
type runs struct {
	api *API

	mu       sync.Mutex // held for a moment only, and never while another lock is waited for
	byTenant map[string]*runsOf
	busy     map[*run]struct{} // on which this process works, or that it has to save
}

// runsOf are a tenant's runs. Whoever holds its lock may wait for that of a run, which can be busy with a long answer:
// no other tenant waits.
type runsOf struct {
	mu      sync.Mutex
	byID    map[string]*run
	mirrors map[string]*mirror // by the run's id
	reading chan struct{}      // has an element while a run is read whole, which can take some times its length
}

// locked returns the runs of a tenant. The caller must unlock them.
func (s *runs) locked(tenant string) *runsOf {
	s.mu.Lock()
	of := s.byTenant[tenant]
	if of == nil {
		of = &runsOf{byID: map[string]*run{}, reading: make(chan struct{}, 1)}
		s.byTenant[tenant] = of
	}
	s.mu.Unlock()
	of.mu.Lock()
	return of
}

// add makes a run of the caller's, without starting it. release gives back its session when it has ended.
func (s *runs) add(x *exchange, asked *batchRequest, release func()) (*run, error) {
	r := &run{
		api: s.api, id: newID("run_"), tenant: x.caller.Tenant, caller: x.caller, created: now(), asked: *asked,
		events: feed{most: s.api.options.Runs.EventBytes}, status: queued, release: release,
		ctx: context.WithoutCancel(x.request.Context()),
	}
	r.size = len(x.body) + sizeOfRequests(asked.batch.Requests)
	r.calls = len(asked.batch.Calls)
	r.asked.batch.Calls = nil // the batch has them
	if err := r.saveNew(); err != nil {
		return nil, err
	}
	of := s.locked(r.tenant)
	defer of.mu.Unlock()
	if !makeRoom(of.byID, nil, 1, r.heldBytes(), s.api.options.Runs) {
		r.removeStored()
		return nil,
			refuse(http.StatusTooManyRequests,
				"the tenant has %d runs that have not ended, and there is no room for more; cancel one, or wait", len(of.byID))
	}
	of.byID[r.id] = r
	return r, nil
}

// makeRoom forgets runs of a tenant that are no longer kept and, until there is room for more runs and more bytes,
// those that ended first, and those that wait and are in the ledger. It does not forget one that is in use.
func makeRoom(of map[string]*run, used *run, runs, size int, bounds RunOptions) bool {
	now := time.Now()
	var over []*run
	until := map[*run]time.Time{}
	bytes := size
	for id, r := range of {
		r.mu.Lock()
		r.expire(now)
		isOver, at := r.status.isOver(), r.expires
		waits := r.status == requiresAction && r.cancel == nil && r.stored.isCurrent() && r != used
		r.mu.Unlock()
		if isOver && !now.Before(at) {
			forgetRun(of, id)
			continue
		}
		bytes += r.heldBytes()
		if isOver || waits {
			over, until[r] = append(over, r), at
		}
	}
	slices.SortFunc(over, func(a, b *run) int { return until[a].Compare(until[b]) })
	enough := func() bool { return len(of)+runs <= bounds.PerTenant && bytes <= bounds.Bytes }
	for _, r := range over {
		if enough() {
			break
		}
		bytes -= r.heldBytes()
		if r.isOver() {
			forgetRun(of, r.id)
		} else {
			evictRun(of, r.id)
		}
	}
	return enough()
}

// evictRun removes a waiting run from memory; the ledger has it. Requests that already have the run can still use it.
func evictRun(of map[string]*run, id string) {
	r := of[id]
	delete(of, id)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Session = nil
	r.leaveSession()
}

// reserve makes room for the answers that are submitted to a run, or refuses them. The room must be given back if they
// are not kept.
func (s *runs) reserve(r *run, size int) error {
	of := s.locked(r.tenant)
	defer of.mu.Unlock()
	more := size
	if of.byID[r.id] != r { // there was no room for it
		more += r.heldBytes()
	}
	if !makeRoom(of.byID, r, 0, more, s.api.options.Runs) {
		return refuse(http.StatusTooManyRequests,
			"the tenant's runs hold %d bytes at most, and there is no room for this; submit less, cancel a run, or wait",
			s.api.options.Runs.Bytes)
	}
	r.hold(size)
	return nil
}

// sweep ends and forgets the runs of all tenants whose time is over.
func (s *runs) sweep() {
	for _, tenant := range s.tenants() {
		s.trim(tenant)
	}
}

func (s *runs) tenants() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.byTenant))
}

// trim forgets the runs of a tenant whose time is over, and those that ended first, if its runs have grown over their
// bounds.
func (s *runs) trim(tenant string) {
	of := s.locked(tenant)
	defer of.mu.Unlock()
	makeRoom(of.byID, nil, 0, 0, s.api.options.Runs)
}

// known returns a run of a tenant that this process has in memory.
func (s *runs) known(tenant, id string) (*run, error) {
	of := s.locked(tenant)
	defer of.mu.Unlock()
	r := of.byID[id]
	if r != nil && r.hasExpired() {
		forgetRun(of.byID, id)
		r = nil
	}
	if r == nil {
		return nil, errNoRun
	}
	return r, nil
}

var errNoRun = refuse(http.StatusNotFound, "the tenant has no such run, or no longer")

// forgetRun removes a run, and drops its data: a client that follows it still has the run.
func forgetRun(of map[string]*run, id string) {
	r := of[id]
	delete(of, id)
	r.mu.Lock()
	r.forgotten, r.asked, r.report = true, batchRequest{}, executor.Report{}
	r.leaveSession()
	r.mu.Unlock()
	r.events.forget()
}

// hasExpired reports whether the run is to be forgotten.
func (r *run) hasExpired() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.expire(now)
	return r.status.isOver() && !now.Before(r.expires)
}

// list returns a tenant's runs, newest first.
func (s *runs) list(tenant string) (found []*run) {
	of := s.locked(tenant)
	defer of.mu.Unlock()
	for id, r := range of.byID {
		if r.hasExpired() {
			forgetRun(of.byID, id)
			continue
		}
		found = append(found, r)
	}
	slices.SortFunc(found, newest)
	return found
}

// newest orders runs, the newest first.
func newest(a, b *run) int { return cmp.Or(b.created.Compare(a.created), cmp.Compare(b.id, a.id)) }

// remove removes a run that was not started.
func (s *runs) remove(r *run) {
	of := s.locked(r.tenant)
	delete(of.byID, r.id)
	of.mu.Unlock()
	r.removeStored()
}

// cancelAll cancels all runs with a batch under way, and returns how many there are.
func (s *runs) cancelAll() (cancelled int) {
	cancel := func(r *run) {
		if r.cancel != nil && !r.stopped {
			r.stopped = true
			r.cancel()
			cancelled++
		}
	}
	s.each(cancel)
	for _, r := range s.busyNow() { // of which some may have been evicted just before they went on
		r.mu.Lock()
		cancel(r)
		r.mu.Unlock()
	}
	return cancelled
}

// clear gives back the sessions of all runs that wait, and ends those that no other process can go on with.
func (s *runs) clear() {
	s.each(func(r *run) {
		if !r.status.isOver() && !r.stored.isCurrent() {
			r.end(cancelled)
		}
		r.leaveSession()
	})
}

// each visits all runs, locked.
func (s *runs) each(visit func(*run)) {
	for _, tenant := range s.tenants() {
		of := s.locked(tenant)
		for _, r := range of.byID {
			r.mu.Lock()
			visit(r)
			r.mu.Unlock()
		}
		of.mu.Unlock()
	}
}

// listedRun is a run without its records.
type listedRun struct {
	ID        string     `json:"id"`
	Status    runStatus  `json:"status"`
	CreatedAt *time.Time `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	Session   string     `json:"session"`
	Pending   int        `json:"pending"` // how many answers it waits for
}

func (x *exchange) listRuns() (reply, error) {
	limit, err := integer(x.query, "limit", 50, maxListed)
	if err != nil {
		return reply{}, err
	}
	wanted := runStatus(x.query.Get("status"))
	if wanted != "" && !slices.Contains(statuses(), wanted) {
		return reply{}, refuse(http.StatusBadRequest, "status must be one of %s", joined(statuses()))
	}
	found, err := x.api.runs.listed(x.request.Context(), x.caller.Tenant)
	if err != nil {
		return reply{}, err
	}
	shown := []listedRun{}
	for _, r := range found {
		if int64(len(shown)) < limit && (wanted == "" || wanted == r.Status) {
			shown = append(shown, r)
		}
	}
	return answer(http.StatusOK, struct {
		Runs []listedRun `json:"runs"`
	}{shown})
}

func joined[T ~string](all []T) string {
	var names []string
	for _, s := range all {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

// run returns the run that the path names.
func (x *exchange) run() (*run, error) {
	return x.api.runs.get(x.request.Context(), x.caller.Tenant, x.request.PathValue("run_id"))
}

func (x *exchange) getRun() (reply, error) {
	r, err := x.run()
	if err != nil {
		return reply{}, err
	}
	a, err := r.answer(x.caller, http.StatusOK)
	a.location = ""
	return a, err
}

func (x *exchange) cancelRun() (reply, error) {
	r, err := x.run()
	if err != nil {
		return reply{}, err
	}
	if err := r.mayChange(x.caller, true); err != nil {
		return reply{}, err
	}
	if r, err = x.stopRun(r); err != nil {
		return reply{}, err
	}
	a, err := x.answerRun(r, http.StatusOK)
	a.location = ""
	return a, err
}

// answerRun is the answer with a run, for requests with effects: it waits for its memory as long as the request lasts.
func (x *exchange) answerRun(r *run, status int) (reply, error) {
	x.begun = func() (reply, error) { return reply{status: status, location: r.urlPath(), runID: r.id}, nil }
	return x.made(x.request.Context(), func() (reply, error) { return r.answer(x.caller, status) })
}

// getRunEvents follows a run.
func (x *exchange) getRunEvents() (reply, error) {
	r, err := x.run()
	if err != nil {
		return reply{}, err
	}
	after := r.events.start()
	if given := x.request.Header.Get("Last-Event-ID"); given != "" {
		if strings.Trim(given, "0123456789") != "" {
			return reply{}, refuse(http.StatusBadRequest, "Last-Event-ID must be the id of an event: a number")
		}
		if after, err = strconv.ParseInt(given, 10, 64); err != nil || after > r.events.end() {
			return reply{}, refuse(http.StatusUnprocessableEntity, "Last-Event-ID is the id of no event of the run")
		}
	}
	return x.follow(r, after)
}

// follow shows the events of a run after one, until the response ends.
func (x *exchange) follow(r *run, after int64) (reply, error) {
	r, done, err := x.mirrored(r)
	if err != nil {
		return reply{}, err
	}
	defer done()
	found, more, gone := r.events.after(after)
	switch {
	case gone:
		return reply{},
			refuse(http.StatusGone, "the events after %d are no longer kept; the run itself has all results", after)
	case found == nil && more == nil:
		return reply{status: http.StatusNoContent}, nil
	}
	stream := x.newEvents()
	defer stream.end()
	stream.begin()
	for {
		switch {
		case found != nil && len(found.data) > stream.room:
			bytes := len(found.data)
			found = nil // who waits for room must not hold it: the run may be forgotten meanwhile
			if !stream.reserve(bytes) {
				return reply{streamed: true}, nil
			}
		case found != nil:
			if !stream.sendAs(found.id, found.name, found.data) || found.last {
				return reply{streamed: true}, nil
			}
			after = found.id
		case more == nil || gone: // nothing follows, or the client is too slow and comes back for the reason
			return reply{streamed: true}, nil
		default:
			if !x.wait(r, more) {
				return reply{streamed: true}, nil
			}
		}
		found, more, gone = r.events.after(after)
	}
}

// wait waits for the next event of a run. It returns false if the client has disconnected, or if no event will come
// because the API stops and the run only waits.
func (x *exchange) wait(r *run, more <-chan struct{}) bool {
	select {
	case <-more:
		return true
	case <-x.request.Context().Done():
	case <-x.api.stopping:
	}
	if !x.api.isStopped() {
		return false
	}
	if r.remote || r.isPaused() {
		select {
		case <-more: // it has just ended
			return true
		default:
			return false
		}
	}
	// The run ends, or is cancelled when the server's patience ends, which is when the request's context does. The
	// client is told either way.
	select {
	case <-more:
		return true
	case <-x.request.Context().Done():
	}
	last := time.NewTimer(lastEvents)
	defer last.Stop()
	select {
	case <-more:
		return true
	case <-last.C:
		return false
	}
}

// lastEvents is the longest wait for the end of a run after its followers' requests were cancelled.
const lastEvents = 3 * time.Second

// isPaused reports whether no batch of the run is under way.
func (r *run) isPaused() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cancel == nil
}

package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/responses"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/internal/standing"
	"github.com/caisson-run/caisson/tool"
)

// runStatus is the state of a run.
type runStatus string

const (
	queued         runStatus = "queued"          // no call has been looked at yet
	inProgress     runStatus = "in_progress"     // calls are running
	requiresAction runStatus = "requires_action" // it waits for outputs or approvals
	completed      runStatus = "completed"       // all calls have ended
	cancelled      runStatus = "cancelled"       // it was cancelled before that
	failed         runStatus = "failed"          // the batch was refused; nothing ran since it was last seen
	expired        runStatus = "expired"         // it has waited too long
)

func statuses() []runStatus {
	return []runStatus{queued, inProgress, requiresAction, completed, cancelled, failed, expired}
}

// isOver reports whether a run in this state stays in it.
func (s runStatus) isOver() bool {
	return s == completed || s == cancelled || s == failed || s == expired
}

// run is a batch that goes on without its client. It is safe for concurrent use.
type run struct {
	api     *API
	id      string
	tenant  string
	caller  auth.Caller // who made it
	created time.Time
	size    int // of the request, in bytes
	calls   int // of the request
	events  feed
	ctx     context.Context // of the ledger; it does not end
	remote  bool            // another process works on it

	mu      sync.Mutex
	stored  storedVersion
	status  runStatus
	asked   batchRequest
	report  executor.Report
	problem string // why it failed; for the caller
	expires time.Time
	answers answers
	held    struct{ submitted, reported int } // bytes: since the run paused, and of the records so far
	turns   int
	stopped bool // a client cancelled it
	// forgotten is set when it is no longer kept: it has no request, no report and no events then.
	forgotten bool
	cancel    context.CancelFunc // of the batch under way; nil without one
	idle      chan struct{}      // closed when the batch under way has ended; nil without one
	release   func()             // gives the session back; nil when that was done
}

// owner is the token and user of a caller.
type owner struct{ token, user string }

func ownerOf(c auth.Caller) owner { return owner{c.ID, c.User} }

// runDocument is what a caller is told of a run, or of a batch that ended within its request.
type runDocument struct {
	ID        string     `json:"id"`
	Status    runStatus  `json:"status"`
	CreatedAt *time.Time `json:"created_at"` // null if nothing is kept
	ExpiresAt *time.Time `json:"expires_at"` // when it is forgotten, or stops waiting
	Session   string     `json:"session"`
	// Records, Totals and Final are those of the batch so far. Pending are the answers that it waits for.
	Records []tool.Record `json:"records"`
	Totals  tool.Totals   `json:"totals"`
	Pending []tool.Action `json:"pending"`
	Final   []string      `json:"final"`
	// Results are the records as the next request to the model has them, if the dialect is known; null otherwise.
	Results json.RawMessage `json:"results"`
	// Problem says why it failed; empty if it did not.
	Problem string `json:"problem"`
}

// report fills in what a batch has reported.
func (d *runDocument) report(r executor.Report, dialect dialects.Dialect) {
	d.Records, d.Pending, d.Final, d.Totals = orEmpty(r.Records), orEmpty(r.Pending), orEmpty(r.Final), r.Totals
	if dialect == nil || r.Status != executor.Completed {
		return
	}
	if results, err := dialect.Results(r.Records); err == nil { // the records have what cannot be written in this form
		d.Results = results
	}
}

// describe returns what a caller is told. A forgotten run has no records.
func (r *run) describe() (_ runDocument, forgotten bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire(time.Now())
	d := runDocument{ID: r.id, Status: r.status, CreatedAt: &r.created, Session: r.asked.session, Problem: r.problem}
	if !r.expires.IsZero() {
		at := r.expires
		d.ExpiresAt = &at
	}
	d.report(r.report, r.asked.dialect)
	if r.status != requiresAction {
		d.Pending = []tool.Action{}
	} else {
		d.Pending = r.answers.missing(d.Pending)
	}
	return d, r.forgotten
}

// answer returns the run as a reply to a caller, without its calls if the caller may not read them.
func (r *run) answer(c auth.Caller, status int) (reply, error) {
	d, forgotten := r.describe()
	if forgotten { // while its answer waited for room
		return reply{}, errNoRun
	}
	if !r.mayRead(c) {
		d = runDocument{ID: d.ID, Status: d.Status, CreatedAt: d.CreatedAt, ExpiresAt: d.ExpiresAt}
		d.report(executor.Report{}, nil)
	}
	a, err := answer(status, d)
	a.location = r.urlPath()
	return a, err
}

// urlPath returns where the run is.
func (r *run) urlPath() string { return "/v1/runs/" + r.id }

// expire ends a run that has waited too long. The caller must hold r.mu.
func (r *run) expire(now time.Time) {
	if r.status == requiresAction && !now.Before(r.expires) {
		r.end(expired)
	}
}

// end puts the run in a final state. The caller must hold r.mu.
func (r *run) end(final runStatus) {
	r.status, r.expires = final, now().Add(r.api.options.Runs.Keep)
	r.answers, r.report.State, r.report.Session, r.held.submitted = answers{}, nil, nil, 0
	r.events.close()
	r.leaveSession()
	_ = r.save(false) // it is logged, and tried again
}

// leaveSession gives back the session of the run. The caller must hold r.mu.
func (r *run) leaveSession() {
	if r.release != nil {
		r.api.ending.Go(r.release) // it may wait for tools that keep data of the session
		r.release = nil
	}
}

// start has the first batch run, or the rest of a paused one, without its client, if the caller of ctx may still act.
// The caller must hold r.mu, and no batch may be in progress.
func (r *run) start(
	ctx context.Context, work func(ctx context.Context, show func(tool.Event) bool) (executor.Report, error),
) error {
	if err := standing.Check(ctx); err != nil {
		return err
	}
	done, ok := r.api.begin()
	if !ok {
		return errStopping
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	idle := make(chan struct{})
	status, expires := r.status, r.expires
	r.cancel, r.idle, r.expires = cancel, idle, time.Time{}
	if r.status = inProgress; r.turns == 0 {
		r.status = queued
	}
	r.turns++
	r.events.startResponse()
	if err := r.save(true); err != nil {
		r.turns--
		r.cancel, r.idle, r.status, r.expires = nil, nil, status, expires
		cancel()
		done()
		return err
	}
	ctx = ledger.InRun(ctx, r.id, r.stored.number)
	mapped := r.mapper()
	go func() {
		defer done()
		defer close(idle)
		defer cancel()
		var last []dialects.Event // of the response; they are shown together with the run's new state
		report, err := work(ctx, func(event tool.Event) bool {
			last = r.show(mapped, event)
			return true
		})
		if err != nil {
			last = mapped.Fail(r.failure(ctx, err))
		}
		r.settle(report, err, last)
	}()
	return nil
}

// mapper returns what writes the events of the next response.
func (r *run) mapper() *responses.Events {
	options := responses.EventsOptions{ResponseID: responseID(r.id, r.turns)}
	if r.turns > 1 {
		options.PreviousResponseID = responseID(r.id, r.turns-1)
	}
	return responses.NewEvents(options)
}

// responseID returns the id of one response of a run.
func responseID(run string, turn int) string {
	return "resp_" + strings.TrimPrefix(run, "run_") + "_" + strconv.Itoa(turn)
}

// show adds an event of the batch to the run's events, or returns those that end the response.
func (r *run) show(mapped *responses.Events, event tool.Event) (last []dialects.Event) {
	if event.Type == tool.BatchStarted || event.Type == tool.BatchResumed {
		r.mu.Lock()
		r.status = inProgress
		r.mu.Unlock()
	}
	if event.Type == tool.CallFinished && event.Parent == "" {
		size := sizeOf([]tool.Record{*event.Record})
		r.mu.Lock()
		r.held.reported += size
		r.mu.Unlock()
	}
	added, err := mapped.Map(event)
	if err != nil {
		r.api.options.Logger.Error("events of a run cannot be written", "run", r.id, "err", err)
		return mapped.Fail("internal error (id " + r.id + ")")
	}
	if event.Type == tool.BatchFinished || event.Type == tool.BatchPaused {
		return added
	}
	r.events.add(added, false)
	return nil
}

// settle takes the report of a batch that has ended or paused, or the error with which it was refused, and the events
// with which its response ends.
func (r *run) settle(report executor.Report, err error, last []dialects.Event) {
	defer r.api.runs.trim(r.tenant) // once r.mu is free
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.report = report
	}
	r.held.submitted, r.held.reported = 0, sizeOf(r.report.Records)
	r.events.add(last, true)
	r.cancel, r.idle = nil, nil
	switch {
	case err != nil && r.stopped:
		r.end(cancelled)
	case errors.Is(err, executor.ErrExpired):
		r.end(expired)
	case err != nil:
		r.problem = r.publicError(err)
		r.end(failed)
	default:
		r.settleReport()
	}
}

// sizeOf returns about how many bytes records hold. The rest of a report, such as its state, mostly repeats the
// request.
func sizeOf(records []tool.Record) int {
	const fixed = 64 // about the numbers and names in each element
	size := 0
	for i := range records {
		r := &records[i]
		size += 8*fixed + len(r.ID) + len(r.Function.Name) + len(r.Function.Arguments) + len(r.Signature) + r.Result.Size() +
			len(r.Log)
		for _, repair := range r.Repairs {
			size += fixed + len(repair.Path) + len(repair.From) + len(repair.To)
		}
		for _, d := range r.Denials {
			size += fixed + len(d.Value) + len(d.Rule) + len(d.Allow.Manifest) + len(d.Allow.Grant)
		}
		for _, call := range r.HostCalls {
			size += 2*fixed + len(call.Target) + len(call.Status)
		}
	}
	return size
}

// recordBytes is about what each of many calls takes, and its record while the batch's answer waits for room.
const recordBytes = 4 << 10

// heldBytes returns how many bytes are held for the run. Until it is over, each call takes more than its record: it is
// planned, or a part of the state with which the run resumes.
func (r *run) heldBytes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := r.size + r.held.submitted + r.held.reported + r.events.size()
	if !r.status.isOver() {
		held += r.calls * recordBytes
	}
	return held
}

// hold counts bytes that are submitted, if the run waits for them.
func (r *run) hold(bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status == requiresAction {
		r.held.submitted = max(r.held.submitted+bytes, 0)
	}
}

// settleReport puts the run in the state that its report stands for. The caller must hold r.mu.
func (r *run) settleReport() {
	isCancelled := func(record tool.Record) bool { return record.Result.Kind == tool.Cancelled }
	lacksCalls := r.report.Status != executor.Completed || slices.ContainsFunc(r.report.Records, isCancelled)
	switch {
	case r.report.Status == executor.RequiresAction && !r.stopped:
		wait := now().Add(r.api.options.Runs.Wait)
		if at := r.report.State.Expires(); at.Before(wait) {
			wait = at.Truncate(time.Millisecond)
		}
		r.status, r.expires, r.answers = requiresAction, wait, answers{}
		_ = r.save(false) // it is logged, and tried again
	case lacksCalls && r.stopped:
		r.end(cancelled)
	case lacksCalls:
		r.problem = "calls were cancelled before the batch had ended, as when its session is ended"
		r.end(failed)
	default:
		r.end(completed)
	}
}

// publicError returns the text of an error for the caller.
func (r *run) publicError(err error) string {
	if refused := refusalFor(err); refused != nil {
		return refused.detail
	}
	return "internal error (id " + r.id + ")"
}

// failure returns what readers of the events are told of an error, and logs one that is the server's own.
func (r *run) failure(ctx context.Context, err error) string {
	if refusalFor(err) == nil {
		r.api.options.Logger.ErrorContext(ctx, "run failed", "id", r.id, "tenant", r.tenant, "err", err)
	}
	return r.publicError(err)
}

// stop cancels the run, and waits until its calls have ended or ctx has.
func (r *run) stop(ctx context.Context) {
	r.mu.Lock()
	if r.status.isOver() || r.forgotten {
		r.mu.Unlock()
		return
	}
	r.stopped = true
	idle := r.idle
	if r.cancel != nil {
		r.cancel()
	} else {
		r.end(cancelled)
	}
	r.mu.Unlock()
	if idle != nil {
		select {
		case <-idle:
		case <-ctx.Done():
		}
	}
}

// findAgent refuses to continue a run whose agent was removed.
func (r *run) findAgent(ctx context.Context) error {
	_, err := r.api.options.Sessions.Allowed(ctx, r.caller)
	if errors.Is(err, agents.ErrNotFound) {
		return refuse(http.StatusConflict,
			"the agent of the token that made the run does not exist any more; store it again, or cancel the run")
	}
	return err
}

// resume continues a paused run if it has all outputs and approvals; otherwise, it stores the last submission. The
// caller must hold r.mu.
func (r *run) resume(ctx context.Context, last *submission) error {
	if len(r.answers.missing(r.report.Pending)) > 0 {
		return r.saveAnswers(last)
	}
	if r.report.Session == nil { // another process has paused it
		session, done, err := r.api.options.Sessions.Get(ctx, r.caller, r.asked.session)
		if err != nil {
			return sessionRefusal(err)
		}
		r.report.Session, r.release = session, done
	}
	resumption := executor.Resumption{
		State: *r.report.State, Session: r.report.Session, Outputs: r.answers.outputs, Approvals: r.answers.approvals,
		Timeout: r.asked.batch.Timeout, Trace: r.asked.batch.Trace, Requests: r.asked.batch.Requests,
		Client: r.asked.batch.Client,
	}
	return r.start(ctx, func(ctx context.Context, show func(tool.Event) bool) (executor.Report, error) {
		return r.api.host.ResumeStream(ctx, resumption, show)
	})
}

// mayRead reports whether a caller may read the calls of the run.
func (r *run) mayRead(c auth.Caller) bool { return c.May(auth.Read) || ownerOf(c) == ownerOf(r.caller) }

// mayChange refuses callers who may not cancel the run or answer for its client.
func (r *run) mayChange(c auth.Caller, orAdmin bool) error {
	if ownerOf(c) == ownerOf(r.caller) || orAdmin && c.May(auth.Admin) {
		return nil
	}
	return refuse(http.StatusForbidden, "another token made this run")
}

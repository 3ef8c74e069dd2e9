package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/tool"
)

// The runs in memory are those with which this process works, or has worked. With a ledger, each change of a run is
// kept there, and a run that another process has changed is read again. Only one process works on a run at a time: each
// change needs the version of the run that it changes.

// storedVersion is what the ledger has of a run. The zero value means nothing.
type storedVersion struct {
	number  int64
	events  int64     // the id of the latest that is kept
	unsaved bool      // the run has changed since
	again   time.Time // when it is tried again to save the run
	unsure  []int64   // attempts to save it whose outcome is unknown
}

// saveAgain is the time between two attempts to save a run, which may be long.
const saveAgain = 2 * time.Second

// now returns the time as precisely as the ledger keeps it.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// isCurrent reports whether the ledger has the run as it is.
func (v storedVersion) isCurrent() bool { return v.number > 0 && !v.unsaved }

// storedRun is what the ledger keeps of a run, in addition to what it needs to find the run.
type storedRun struct {
	Caller   auth.Caller             `json:"caller"`
	Timeout  time.Duration           `json:"timeout_ns,omitempty"`
	Trace    string                  `json:"trace,omitempty"`
	Requests map[string]tool.Request `json:"requests,omitempty"`
	Client   []tool.Definition       `json:"client,omitempty"`
	Dialect  string                  `json:"dialect,omitempty"`
	Size     int                     `json:"size"`
	Calls    int                     `json:"calls"`
	Turns    int                     `json:"turns"`
	Begins   int64                   `json:"begins"` // the first event of the current response
	Batch    string                  `json:"batch,omitempty"`
	Ended    executor.Status         `json:"batch_status,omitempty"`
	Records  []tool.Record           `json:"records,omitempty"`
	Totals   tool.Totals             `json:"totals"`
	Pending  []tool.Action           `json:"pending,omitempty"`
	Final    []string                `json:"final,omitempty"`
	State    *executor.State         `json:"state,omitempty"`
	Problem  string                  `json:"problem,omitempty"`
	Stopped  bool                    `json:"stopped,omitempty"`
	storedAnswers
}

// storedAnswers are answers that were submitted to a run that waits for more.
type storedAnswers struct {
	Outputs   []tool.Answer   `json:"outputs,omitempty"`
	Approvals []tool.Approval `json:"approvals,omitempty"`
}

// content returns what the ledger keeps. The caller must hold r.mu.
func (r *run) content() ([]byte, error) {
	s := storedRun{
		Caller: r.caller, Timeout: r.asked.batch.Timeout, Trace: r.asked.batch.Trace, Requests: r.asked.batch.Requests,
		Client: r.asked.batch.Client, Size: r.size, Calls: r.calls, Turns: r.turns, Begins: r.events.start() + 1,
		Batch: r.report.ID, Ended: r.report.Status, Records: r.report.Records, Totals: r.report.Totals,
		Pending: r.report.Pending, Final: r.report.Final, State: r.report.State, Problem: r.problem, Stopped: r.stopped,
		storedAnswers: storedAnswers{r.answers.outputs, r.answers.approvals},
	}
	if r.asked.dialect != nil {
		s.Dialect = r.asked.dialect.Name()
	}
	return json.Marshal(s)
}

// save has the ledger keep the run as it is. If hold is set, this process works on it from now on. The caller must hold
// r.mu.
func (r *run) save(hold bool) error {
	return r.store(func(ctx context.Context, kept *ledger.Ledger) error { return r.saveIn(ctx, kept, hold) })
}

// saveAnswers stores the last submission to a run that waits for more. The caller must hold r.mu.
func (r *run) saveAnswers(last *submission) error {
	if !r.stored.isCurrent() {
		return r.save(false)
	}
	return r.store(func(ctx context.Context, kept *ledger.Ledger) error {
		data, err := json.Marshal(storedAnswers{last.outputs, last.approvals})
		if err != nil {
			return err
		}
		row := r.row()
		version, err := kept.AddAnswers(ctx, row, data)
		return r.saved(row, version, err)
	})
}

// store writes the run to the ledger, if there is one. If that fails, the run is saved later, unless another process
// has changed it. The caller must hold r.mu.
func (r *run) store(write func(ctx context.Context, kept *ledger.Ledger) error) error {
	kept, err := r.api.host.Ledger(r.ctx)
	if kept == nil && err == nil || r.forgotten {
		r.stored.unsaved = false
		return nil
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(r.ctx, storeTime)
		defer cancel()
		if last := r.api.lastSaves.Load(); last != 0 {
			ctx, cancel = context.WithDeadline(ctx, time.Unix(0, last))
			defer cancel()
		}
		err = write(ctx, kept)
	}
	r.stored.unsaved = err != nil && !errors.Is(err, ledger.ErrChanged) && !errors.Is(err, ledger.ErrTooMany)
	if r.cancel != nil || r.stored.unsaved {
		r.api.runs.working(r)
	}
	if errors.Is(err, ledger.ErrTooMany) {
		return refuse(http.StatusTooManyRequests, "the tenant has as many runs that have not ended as it may have; "+
			"cancel one, or wait")
	}
	if errors.Is(err, ledger.ErrChanged) {
		return refuse(http.StatusConflict, "another request has changed the run meanwhile; look at it again")
	}
	if err != nil {
		r.stored.again = time.Now().Add(saveAgain)
		r.api.options.Logger.ErrorContext(r.ctx, "a run cannot be kept", "run", r.id, "tenant", r.tenant, "err", err)
		return &refusal{status: http.StatusServiceUnavailable, detail: "the run cannot be kept now; try again later",
			header: [2]string{"Retry-After", "5"}}
	}
	return nil
}

// maxUnsure bounds the attempts to save a run whose outcome is unknown.
const maxUnsure = 16

func (r *run) saveIn(ctx context.Context, kept *ledger.Ledger, hold bool) error {
	content, err := r.content()
	if err != nil {
		return err
	}
	row := r.row()
	row.Content = content
	if row.Version == 0 {
		bounds := r.api.options.Runs
		row.Version, err = kept.AddRun(ctx, row,
			ledger.RunBounds{Runs: bounds.PerTenant, Bytes: bounds.Bytes, Keep: bounds.Keep})
		if err != nil {
			return err
		}
		if r.stored.number = row.Version; hold {
			return nil
		}
	}
	events, first := r.events.since(r.stored.events)
	version, err := kept.ChangeRun(ctx, row, hold, events, first)
	if err = r.saved(row, version, err); err == nil {
		r.stored.events = r.events.end()
	}
	return err
}

// row returns the row of the run in the ledger, without the content. The caller must hold r.mu.
func (r *run) row() ledger.Run {
	row := ledger.Run{
		ID: r.id, Tenant: r.tenant, Status: string(r.status), IsOver: r.status.isOver(), Created: r.created, Until: r.expires,
		Session: r.asked.session, Version: r.stored.number, Bytes: r.size + r.held.reported + r.events.size(),
		Save: ledger.NewSave(), Unsure: r.stored.unsure,
	}
	if r.status == requiresAction {
		row.Pending = len(r.answers.missing(r.report.Pending))
	}
	return row
}

// saved notes the outcome of an attempt to change the run in the ledger, and returns its error. The caller must hold
// r.mu.
func (r *run) saved(row ledger.Run, version int64, err error) error {
	if err == nil {
		r.stored.number, r.stored.unsure = version, nil
	} else if !errors.Is(err, ledger.ErrChanged) && len(r.stored.unsure) < maxUnsure {
		r.stored.unsure = append(r.stored.unsure, row.Save)
	}
	return err
}

// saveNew has the ledger keep a new run. If it cannot, there is no such run.
func (r *run) saveNew() error {
	r.mu.Lock()
	err := r.save(true)
	isUnsure := r.stored.unsaved // the ledger may add it later
	r.forgotten = err != nil
	r.mu.Unlock()
	if isUnsure {
		r.removeStored()
	}
	return err
}

// removeStored removes the run from the ledger.
func (r *run) removeStored() {
	kept, err := r.api.host.Ledger(r.ctx)
	if kept != nil {
		ctx, cancel := context.WithTimeout(r.ctx, storeTime)
		defer cancel()
		err = kept.RemoveRun(ctx, r.tenant, r.id)
	}
	if err != nil {
		r.api.options.Logger.ErrorContext(r.ctx, "a run cannot be removed", "run", r.id, "tenant", r.tenant, "err", err)
	}
}

// get returns a run of a tenant as it is now.
func (s *runs) get(ctx context.Context, tenant, id string) (*run, error) {
	r, err := s.known(tenant, id)
	kept, failure := s.api.host.Ledger(ctx)
	if kept == nil && failure == nil || r != nil && r.isOurs() {
		return r, err
	}
	if failure != nil {
		return nil, failure
	}
	row, err := kept.Run(ctx, tenant, id, false)
	if err == nil && (r == nil || r.version() != row.Version) {
		r, err = s.read(ctx, kept, tenant, id)
	}
	if errors.Is(err, ledger.ErrNotFound) {
		err = errNoRun
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// read reads a run from the ledger once no other request of the tenant does: a run can be long.
func (s *runs) read(ctx context.Context, kept *ledger.Ledger, tenant, id string) (*run, error) {
	of := s.locked(tenant)
	of.mu.Unlock()
	select {
	case of.reading <- struct{}{}:
		defer func() { <-of.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	row, err := kept.Run(ctx, tenant, id, false)
	if err != nil {
		return nil, err
	}
	if r, _ := s.known(tenant, id); r != nil && r.version() == row.Version {
		return r, nil // another request has read it
	}
	if row, err = kept.Run(ctx, tenant, id, true); err != nil {
		return nil, err
	}
	r, err := s.restore(ctx, kept, row)
	if err != nil || r.remote {
		return r, err
	}
	return s.learn(r), nil
}

// isOurs reports whether this process alone knows what the run is like: it works on it, or could not save it.
func (r *run) isOurs() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cancel != nil || r.stored.unsaved
}

func (r *run) version() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stored.number
}

// learn puts a run that was read in place of the one in memory, unless that is as new. Without room it is not put
// there.
func (s *runs) learn(r *run) *run {
	of := s.locked(r.tenant)
	defer of.mu.Unlock()
	if known := of.byID[r.id]; known != nil {
		if known.version() >= r.version() {
			return known
		}
		forgetRun(of.byID, r.id)
	}
	if makeRoom(of.byID, r, 1, r.heldBytes(), s.api.options.Runs) {
		of.byID[r.id] = r
	}
	return r
}

// restore makes a run of what the ledger has. One whose process is dead has failed.
func (s *runs) restore(ctx context.Context, kept *ledger.Ledger, row ledger.Run) (*run, error) {
	var stored storedRun
	if err := json.Unmarshal(row.Content, &stored); err != nil {
		return nil, err
	}
	r := &run{
		api: s.api, id: row.ID, tenant: row.Tenant, caller: stored.Caller, created: row.Created, size: stored.Size,
		calls: stored.Calls, events: feed{most: s.api.options.Runs.EventBytes, begins: stored.Begins},
		ctx: context.WithoutCancel(ctx), remote: row.IsHeld, status: runStatus(row.Status), problem: stored.Problem,
		expires: row.Until, turns: stored.Turns, stopped: stored.Stopped,
	}
	r.asked.session = row.Session
	r.asked.batch.Timeout, r.asked.batch.Trace = stored.Timeout, stored.Trace
	r.asked.batch.Requests, r.asked.batch.Client = stored.Requests, stored.Client
	if stored.Dialect != "" {
		var err error
		if r.asked.dialect, err = dialectNamed(stored.Dialect, http.StatusInternalServerError); err != nil {
			return nil, err
		}
	}
	r.report = executor.Report{
		ID: stored.Batch, Status: stored.Ended, Records: stored.Records, Totals: stored.Totals, Pending: stored.Pending,
		Final: stored.Final, State: stored.State,
	}
	for _, data := range row.Answers {
		var more storedAnswers
		if err := json.Unmarshal(data, &more); err != nil {
			return nil, err
		}
		stored.Outputs = append(stored.Outputs, more.Outputs...)
		stored.Approvals = append(stored.Approvals, more.Approvals...)
	}
	r.answers = answers{stored.Outputs, stored.Approvals, map[string]bool{}}
	for i := range stored.Outputs {
		r.answers.given[stored.Outputs[i].CallID] = true
	}
	for i := range stored.Approvals {
		r.answers.given[stored.Approvals[i].CallID] = true
	}
	r.held.reported = sizeOf(stored.Records)
	r.held.submitted = (&submission{outputs: stored.Outputs, approvals: stored.Approvals}).size()
	if err := r.readEvents(ctx, kept); err != nil {
		return nil, err
	}
	r.stored = storedVersion{number: row.Version, events: r.events.end()}
	if row.IsHeld {
		r.status = inProgress
	}
	if row.IsAbandoned {
		r.abandon()
	}
	if r.status.isOver() {
		r.events.close()
	}
	return r, nil
}

const abandoned = "the server that ran it has ended; GET /v1/calls has its calls, of which some may have the outcome " +
	"unknown_outcome"

// abandon ends a run whose process is dead.
func (r *run) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problem = abandoned
	r.events.add(r.mapper().Fail(abandoned), true)
	r.end(failed)
}

// readEvents reads the events that the ledger has and the run has not.
func (r *run) readEvents(ctx context.Context, kept *ledger.Ledger) error {
	for {
		found, err := kept.Events(ctx, r.id, r.events.end())
		if err != nil || len(found) == 0 {
			return err
		}
		r.events.mirror(found)
	}
}

// listed returns what a list shows of a tenant's runs, newest first.
func (s *runs) listed(ctx context.Context, tenant string) (shown []listedRun, err error) {
	kept, err := s.api.host.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	if kept == nil {
		for _, r := range s.list(tenant) {
			d, _ := r.describe()
			shown = append(shown, listedRun{d.ID, d.Status, d.CreatedAt, d.ExpiresAt, d.Session, len(d.Pending)})
		}
		return shown, nil
	}
	rows, err := kept.Runs(ctx, tenant)
	for _, row := range rows {
		one := listedRun{row.ID, runStatus(row.Status), &row.Created, nil, row.Session, row.Pending}
		if !row.Until.IsZero() {
			one.ExpiresAt = &row.Until
		}
		switch {
		case row.IsAbandoned:
			one.Status = failed
		case row.IsHeld:
			one.Status = inProgress
		case one.Status == requiresAction && !time.Now().Before(row.Until):
			one.Status, one.Pending = expired, 0
		}
		shown = append(shown, one)
	}
	return shown, err
}

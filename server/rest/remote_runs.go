package rest

import (
	"context"
	"time"

	"github.com/caisson-run/caisson/internal/ledger"
)

// Between two looks at a run on which another process works.
const (
	lookAgain = 200 * time.Millisecond
	lookLater = time.Second // at one that waits
)

// stopRun cancels a run, wherever it is, and returns it as it is then.
func (x *exchange) stopRun(r *run) (*run, error) {
	ctx := x.request.Context()
	if !r.remote {
		r.stop(ctx)
		return r, nil
	}
	kept, err := x.api.host.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	if err := kept.CancelRun(ctx, r.tenant, r.id); err != nil {
		return nil, err
	}
	for r.remote {
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return r, nil
		}
		if r, err = x.run(); err != nil {
			return nil, err
		}
	}
	r.stop(ctx) // it has paused meanwhile
	return r, nil
}

// mirror has the events that other processes make of a run, for all that follow the run here.
type mirror struct {
	run     *run // without its calls
	readers int
	stop    context.CancelFunc
}

// mirrored returns a run whose events can be followed, whichever process makes them. done must be called afterwards.
func (x *exchange) mirrored(r *run) (followed *run, done func(), err error) {
	ctx := context.WithoutCancel(x.request.Context())
	kept, err := x.api.host.Ledger(ctx)
	if kept == nil || r.isOurs() || r.isOver() {
		return r, func() {}, err
	}
	of := x.api.runs.locked(r.tenant)
	defer of.mu.Unlock()
	m := of.mirrors[r.id]
	if m == nil {
		m = &mirror{run: &run{api: r.api, id: r.id, tenant: r.tenant, remote: true,
			events: feed{most: r.events.most, begins: r.events.start() + 1}}}
		reading, cancel := context.WithTimeout(x.request.Context(), storeTime) // the tenant's other requests wait
		defer cancel()
		if err := m.run.readEvents(reading, kept); err != nil {
			return nil, nil, err
		}
		if of.mirrors == nil {
			of.mirrors = map[string]*mirror{}
		}
		of.mirrors[r.id] = m
		ctx, m.stop = context.WithCancel(ctx)
		x.api.ending.Go(func() { m.run.mirror(ctx, kept) })
	}
	m.readers++
	return m.run, func() {
		of := x.api.runs.locked(m.run.tenant) // the run that was read is not kept for as long as it is followed
		defer of.mu.Unlock()
		if m.readers--; m.readers == 0 {
			m.stop()
			delete(of.mirrors, m.run.id)
		}
	}, nil
}

func (r *run) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status.isOver()
}

// mirror adds the events that other processes make of a run until it is over, or ctx ends, or the API stops.
func (r *run) mirror(ctx context.Context, kept *ledger.Ledger) {
	for {
		row, err := kept.Run(ctx, r.tenant, r.id, false)
		if read := r.readEvents(ctx, kept); err == nil {
			err = read
		}
		if err != nil || row.IsOver || row.IsAbandoned {
			r.events.close()
			return
		}
		wait := lookAgain
		if !row.IsHeld { // it waits, perhaps for a day
			wait = lookLater
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		case <-r.api.stopping:
			return
		}
	}
}

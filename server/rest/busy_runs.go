package rest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/caisson-run/caisson/internal/ledger"
)

// working notes that this process works on a run, or has to save it.
func (s *runs) working(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy == nil {
		s.busy = map[*run]struct{}{}
	}
	s.busy[r] = struct{}{}
}

// keepRuns keeps the events of runs while they are made, cancels runs that another process was asked to cancel, and
// saves those that could not be saved, until the API stops.
func (a *API) keepRuns() {
	clock := time.NewTicker(lookAgain)
	defer clock.Stop()
	for {
		select {
		case <-clock.C:
			a.runs.keepBusy()
		case <-a.stopping:
			a.working.Wait()
			a.runs.keepBusy()
			return
		}
	}
}

func (s *runs) busyNow() []*run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.busy))
}

func (s *runs) keepBusy() {
	busy := s.busyNow()
	if len(busy) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(busy[0].ctx, storeTime)
	defer cancel()
	kept, err := s.api.host.Ledger(ctx)
	var asked []string
	if err == nil {
		asked, err = kept.Cancelled(ctx)
	}
	if err != nil {
		return // whoever needs the ledger says so
	}
	for _, r := range busy {
		if !r.keep(kept, slices.Contains(asked, r.id)) {
			s.mu.Lock()
			delete(s.busy, r)
			s.mu.Unlock()
		}
	}
}

// keep stores new events of the run, or the run itself if that failed before. It reports whether to call it again.
func (r *run) keep(kept *ledger.Ledger, cancel bool) (more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel && r.cancel != nil {
		r.stopped = true
		r.cancel()
	}
	if r.cancel == nil {
		if r.stored.unsaved && time.Now().After(r.stored.again) {
			_ = r.save(false) // it is logged
		}
		return r.stored.unsaved
	}
	events, first := r.events.since(r.stored.events)
	if len(events) == 0 {
		return true
	}
	ctx, stop := context.WithTimeout(r.ctx, storeTime)
	defer stop()
	switch err := kept.AddEvents(ctx, r.tenant, r.id, events, first); {
	case err == nil:
		r.stored.events = events[len(events)-1].ID
	case errors.Is(err, ledger.ErrChanged): // others have taken this process for dead
		r.cancel()
	}
	return true
}

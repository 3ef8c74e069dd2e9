package executor

import (
	"context"
	"encoding/json"

	"github.com/caisson-run/caisson/tool"
)

const (
	// maxWaitingBytes is how long the calls of a batch may be in a state. The rest is for what comes
	// of them.
	maxWaitingBytes = MaxStateBytes / 2
	// stateEnvelope is far above what a state takes besides its calls.
	stateEnvelope = 4 << 10
)

const tooLong = "the batch is too long to wait for an answer or an approval; make fewer or shorter calls at a time"

// refuseLong refuses what would wait in a batch whose calls are too long to be kept meanwhile, before
// anybody is told of it: a model must not choose what cannot be stored.
func (b *batch) refuseLong(ctx context.Context, calls []*call) {
	waiting := false
	for _, c := range calls {
		waiting = waiting || c.waits()
	}
	if waiting && sizeInState(calls, maxWaitingBytes, func(c *call) bool { return c.phase != phaseEnded }) > maxWaitingBytes {
		b.refuseWaiting(ctx, calls)
	}
}

// refuseUnstorable refuses what waits where the batch cannot be stored, for the results of calls that
// have run. It reports whether it did: a state that cannot be stored is nobody's to wait for.
func (b *batch) refuseUnstorable(ctx context.Context, calls []*call) bool {
	const most = MaxStateBytes - stateEnvelope
	if sizeInState(calls, most, func(*call) bool { return true }) <= most {
		return false
	}
	return b.refuseWaiting(ctx, calls)
}

// refuseWaiting refuses all calls that wait, and reports whether there were any.
func (b *batch) refuseWaiting(ctx context.Context, calls []*call) (some bool) {
	for _, c := range calls {
		if !c.waits() {
			continue
		}
		some = true
		b.abandonWait(c)
		c.refuse(tool.Busy, tooLong)
	}
	if some {
		b.executor.log.WarnContext(ctx, "batch is too long to wait", "batch", b.id, "session", b.session.id)
	}
	return some
}

// sizeInState returns how many bytes those calls that count take in a state's JSON, as encoding/json
// writes it inside another document. Beyond most it need not go on.
func sizeInState(calls []*call, most int, counts func(*call) bool) (size int) {
	for _, c := range calls {
		if !counts(c) {
			continue
		}
		s := storedCall{callID: c.record.CallID, call: c.record.Call}
		switch {
		case c.phase == phaseEnded:
			s.record = &c.record
		case c.waits():
			s.action = &c.wait.action
		}
		text, err := json.Marshal(s.encode())
		if err != nil {
			return most + 1
		}
		if size += len(text) + 1; size > most { // and a comma
			return size
		}
	}
	return size
}

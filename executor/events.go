package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/caisson-run/caisson/tool"
)

// events hands events to the observer, one at a time.
type events struct {
	mu       sync.Mutex
	observer Observer // nil for none
	log      *slog.Logger
}

// send makes an event and hands it over. A panic of the observer must not change what
// becomes of the call.
func (s *events) send(ctx context.Context, kind tool.EventType, c *call) {
	if s.observer == nil {
		return
	}
	event := tool.Event{Type: kind, CallID: c.record.CallID, Tool: c.tool}
	if kind == tool.CallFinished {
		record := c.record
		event.Record = &record
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if value := recover(); value != nil {
			s.log.ErrorContext(ctx, "observer panicked", "call_id", event.CallID, "error", fmt.Sprint(value))
		}
	}()
	event.Time = time.Now()
	s.observer.Observe(ctx, event)
}

// started tells the log and the observer that it is a call's turn.
func (e *Executor) started(ctx context.Context, c *call) {
	if e.log.Enabled(ctx, slog.LevelDebug) {
		e.log.DebugContext(ctx, "call started", "call_id", c.record.CallID, "tool", clip(c.tool))
	}
	e.events.send(ctx, tool.CallStarted, c)
}

// finished tells the log and the observer what a call came to. Neither arguments nor
// results are logged.
func (e *Executor) finished(ctx context.Context, c *call) {
	if level := levelOf(c.record.Result.Kind); e.log.Enabled(ctx, level) {
		e.logFinished(ctx, level, c)
	}
	e.events.send(ctx, tool.CallFinished, c)
}

func (e *Executor) logFinished(ctx context.Context, level slog.Level, c *call) {
	attributes := []slog.Attr{
		slog.String("call_id", c.record.CallID),
		slog.String("tool", clip(c.tool)),
		slog.String("kind", string(c.record.Result.Kind)),
		slog.Float64("ms", float64(c.record.ExecutionTime.Microseconds())/1000),
	}
	if level == slog.LevelError && c.cause != nil {
		attributes = append(attributes, slog.String("error", c.cause.Error()))
		var panicked *panicError
		if errors.As(c.cause, &panicked) {
			attributes = append(attributes, slog.String("stack", string(panicked.stack)))
		}
	}
	e.log.LogAttrs(ctx, level, "call finished", attributes...)
}

// levelOf returns how loud the end of a call is: what crashed is an error, what failed
// for the tool's or the caller's reasons a warning.
func levelOf(kind tool.Kind) slog.Level {
	switch kind {
	case "":
		return slog.LevelInfo
	case tool.Trap, tool.Internal:
		return slog.LevelError
	default:
		return slog.LevelWarn
	}
}

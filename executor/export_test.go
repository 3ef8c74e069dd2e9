package executor

import (
	"context"

	"github.com/caisson-run/caisson/executor/internal/output"
	"github.com/caisson-run/caisson/executor/internal/pause"
	"github.com/caisson-run/caisson/tool"
)

// OutputToolName is the name of OutputTool.
const OutputToolName = output.ToolName

// The kinds of ErrWrongAnswers.
const (
	ErrUnknownCall   = pause.ErrUnknownCall
	ErrMissingAnswer = pause.ErrMissingAnswer
	ErrDoubledAnswer = pause.ErrDoubledAnswer
	ErrWrongAnswer   = pause.ErrWrongAnswer
)

// Claims returns how many claims the executor remembers.
func (e *Executor) Claims() int { return e.claims.Len() }

// Next waits for one event.
func (s *Stream) Next(ctx context.Context) (tool.Event, error) { return s.next(ctx) }

// AddTotals adds one record.
func AddTotals(t *tool.Totals, r *tool.Record) { addTotals(t, r) }

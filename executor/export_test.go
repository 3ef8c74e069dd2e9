package executor

import (
	"context"

	"github.com/caisson-run/caisson/executor/internal/pause"
	"github.com/caisson-run/caisson/tool"
)

// The kinds of ErrWrongAnswers.
const (
	ErrUnknownCall   = pause.ErrUnknownCall
	ErrMissingAnswer = pause.ErrMissingAnswer
	ErrDoubledAnswer = pause.ErrDoubledAnswer
	ErrWrongAnswer   = pause.ErrWrongAnswer
)

// Next waits for one event.
func (s *Stream) Next(ctx context.Context) (tool.Event, error) { return s.next(ctx) }

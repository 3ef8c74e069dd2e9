// Package sampling logs a sample of what clients can cause without end: their mistakes, and failures that they bring
// about, with text of theirs.
package sampling

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// Burst is the number of lines of one kind that are logged, before one every ten seconds.
	Burst = 20
	every = 10 * time.Second
	// maxMessages is the number of messages that are told apart. Further ones share a bound.
	maxMessages = 100
	// maxText is the maximum number of bytes that are logged of a message or of a value.
	maxText = 4 << 10
)

// Logger returns a logger that logs a sample of each message to another one. A line says how many before it were not
// logged, and values that are long are cut. A nil logger discards all.
func Logger(to *slog.Logger) *slog.Logger {
	if to == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(handler{to.Handler(), &samples{byMessage: map[string]*Sample{}}})
}

type handler struct {
	slog.Handler
	samples *samples
}

func (h handler) Handle(ctx context.Context, record slog.Record) error {
	hidden, ok := h.samples.take(record.Message)
	if !ok {
		return nil
	}
	logged := slog.NewRecord(record.Time, record.Level, Cut(record.Message), record.PC)
	record.Attrs(func(a slog.Attr) bool {
		logged.AddAttrs(slog.Attr{Key: a.Key, Value: short(a.Value)})
		return true
	})
	if hidden > 0 {
		logged.AddAttrs(slog.Int("not_logged", hidden))
	}
	return h.Handler.Handle(ctx, logged)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	shown := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		shown[i] = slog.Attr{Key: a.Key, Value: short(a.Value)}
	}
	return handler{h.Handler.WithAttrs(shown), h.samples}
}

func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.samples}
}

// short returns a value, or an error's text, with at most maxText bytes.
func short(v slog.Value) slog.Value {
	v = v.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.StringValue(Cut(v.String()))
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			return slog.AnyValue(errors.New(Cut(err.Error())))
		}
	}
	return v
}

// Cut returns a text, or the beginning of a longer one than a log should have.
func Cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// samples are those of each message. They are safe for concurrent use.
type samples struct {
	mu        sync.Mutex
	byMessage map[string]*Sample
}

// take reports whether to log a message, and how many like it were not logged before.
func (s *samples) take(message string) (hidden int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byMessage[message] == nil && len(s.byMessage) >= maxMessages {
		message = ""
	}
	if s.byMessage[message] == nil {
		s.byMessage[message] = New()
	}
	return s.byMessage[message].Take()
}

// Sample says which lines of one kind are logged: 20, and then one every ten seconds. It is not safe for concurrent
// use.
type Sample struct {
	limit  *rate.Limiter
	Hidden int // since the last line
}

// New returns a sample that no line was taken from.
func New() *Sample { return &Sample{limit: rate.NewLimiter(rate.Every(every), Burst)} }

// Take reports whether to log the next line, and how many before it were not logged.
func (s *Sample) Take() (hidden int, ok bool) {
	if !s.limit.Allow() {
		s.Hidden++
		return 0, false
	}
	hidden, s.Hidden = s.Hidden, 0
	return hidden, true
}

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
	// Each message is logged in 20 lines, and then in one every ten seconds.
	burst = 20
	every = 10 * time.Second
	// maxMessages is how many messages are told apart. Further ones share a bound.
	maxMessages = 100
	// maxText is how many bytes of a message or of a value are logged.
	maxText = 4 << 10
)

// Logger returns a logger that logs a sample of each message to another one. A line says how many before it were not
// logged, and values that are long are cut. A nil logger discards all.
func Logger(to *slog.Logger) *slog.Logger {
	if to == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(handler{to.Handler(), &samples{byMessage: map[string]*sample{}}})
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
	logged := slog.NewRecord(record.Time, record.Level, cut(record.Message), record.PC)
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
		return slog.StringValue(cut(v.String()))
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			return slog.AnyValue(errors.New(cut(err.Error())))
		}
	}
	return v
}

func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// samples are those of each message. They are safe for concurrent use.
type samples struct {
	mu        sync.Mutex
	byMessage map[string]*sample
}

type sample struct {
	limit  *rate.Limiter
	hidden int // since the last line
}

// take reports whether to log a message, and how many like it were not logged before.
func (s *samples) take(message string) (hidden int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byMessage[message] == nil && len(s.byMessage) >= maxMessages {
		message = ""
	}
	of := s.byMessage[message]
	if of == nil {
		of = &sample{limit: rate.NewLimiter(rate.Every(every), burst)}
		s.byMessage[message] = of
	}
	if !of.limit.Allow() {
		of.hidden++
		return 0, false
	}
	hidden, of.hidden = of.hidden, 0
	return hidden, true
}

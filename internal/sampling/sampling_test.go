package sampling

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/time/rate"
)

func TestLogger(t *testing.T) {
	var log bytes.Buffer
	to := slog.New(slog.NewTextHandler(&log, nil))
	logger := Logger(to).With("server", "this")
	for i := range 5 * Burst {
		logger.Warn("many", "number", i)
		logger.WithGroup("more").Warn("many", "number", i)
	}
	logger.Error("rare", "err", errors.New("no\nline"), "list", []int{1})
	text := log.String()
	assert.Equal(t, Burst, strings.Count(text, "msg=many"))
	assert.Contains(t, text, `msg=rare server=this err="no\nline" list=[1]`)
	assert.Equal(t, Burst+1, strings.Count(text, "\n"))

	logger.Handler().(handler).samples.byMessage["many"].limit = rate.NewLimiter(rate.Inf, 1) // as after some time
	logger.Warn("many")
	logger.Warn("many")
	assert.Equal(t, 1, strings.Count(log.String(), fmt.Sprintf("not_logged=%d\n", 9*Burst)))
	Logger(nil).Error("discarded")
}

// TestLongText: neither messages nor values are logged whole if they are long.
func TestLongText(t *testing.T) {
	long := strings.Repeat("€", 1<<20)
	for name, to := range map[string]func(*slog.Logger){
		"a message":      func(l *slog.Logger) { l.Error(long) },
		"a value":        func(l *slog.Logger) { l.Error("x", "value", long) },
		"an error":       func(l *slog.Logger) { l.Error("x", "err", fmt.Errorf("cause: %w", errors.New(long))) },
		"a value before": func(l *slog.Logger) { l.With("value", long).Error("x") },
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			plain := slog.New(slog.NewTextHandler(&log, nil))
			to(Logger(plain))
			assert.Less(t, log.Len(), 2*maxText)
			assert.Contains(t, log.String(), "€…")
			log.Reset()
			to(plain) // the control
			assert.Greater(t, log.Len(), len(long))
		})
	}
}

// TestManyMessages: messages that say something else each time are bounded together.
func TestManyMessages(t *testing.T) {
	var log bytes.Buffer
	logger := Logger(slog.New(slog.NewTextHandler(&log, nil)))
	for i := range 10 * maxMessages {
		logger.Error(fmt.Sprint("message ", i))
	}
	assert.Equal(t, maxMessages+Burst, strings.Count(log.String(), "\n"))
}

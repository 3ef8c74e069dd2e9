package mcp_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/mcp"
)

// writtenLog is a log that a test reads.
type writtenLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *writtenLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *writtenLog) lines() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.text.Bytes(), []byte("\n"))
}

// TestAttackLogOfClientMistakes: no client fills the log. The SDK logs each mistake of a client as an error or a warning: one request
// with a batch of 1,024 notifications writes 2,048 lines, and a token may make 200 such requests a second.
func TestAttackLogOfClientMistakes(t *testing.T) {
	log := &writtenLog{}
	w := newWorld(t, mcp.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	mine := auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}
	batch := "[" + strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","method":"notifications/initialized"},`, 1024), ",") + "]"

	status, _, header := post(t, w, mine, http.MethodPost, strings.Replace(initializeBody, "2025-11-25", "2025-03-26", 1), nil)
	require.Equal(t, http.StatusOK, status)
	session := map[string]string{"Mcp-Session-Id": header.Get("Mcp-Session-Id")}
	for range 2 {
		status, answer, _ := post(t, w, mine, http.MethodPost, batch, nil) // before a session
		require.Equal(t, http.StatusAccepted, status, answer)
		status, answer, _ = post(t, w, mine, http.MethodPost, batch, session) // after the first notification
		require.Equal(t, http.StatusAccepted, status, answer)
	}
	for range 100 {
		post(t, w, mine, http.MethodPost, initializeBody, session)
		post(t, w, mine, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, session)
	}
	assert.Never(t, func() bool { return log.lines() > 100 }, 2*time.Second, 50*time.Millisecond)
	assert.Positive(t, log.lines(), "the first are logged")
}

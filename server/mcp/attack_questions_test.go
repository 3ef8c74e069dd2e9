package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/mcp"
)

// asking is a session of a client of the revision 2025-03-26 whose user can be asked.
type asking struct {
	*world
	token   string
	session string
}

func newAsking(t *testing.T, w *world) asking {
	t.Helper()
	who := auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}
	begin := strings.Replace(initializeBody, `"capabilities":{}`, `"capabilities":{"elicitation":{"form":{}}}`, 1)
	status, answer, header := post(t, w, who, http.MethodPost, strings.Replace(begin, "2025-11-25", "2025-03-26", 1), nil)
	require.Equal(t, http.StatusOK, status, answer)
	token, err := json.Marshal(who)
	require.NoError(t, err)
	return asking{w, string(token), header.Get("Mcp-Session-Id")}
}

// send sends messages, and returns the answers as they arrive. The caller must close them.
func (a asking) send(ctx context.Context, t *testing.T, body string) io.ReadCloser {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.web.URL, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", a.token)
	r.Header.Set("Mcp-Session-Id", a.session)
	r.Header.Set("Mcp-Protocol-Version", "2025-03-26")
	response, err := a.web.Client().Do(r)
	require.NoError(t, err)
	return response.Body
}

// count reads as many messages, of which some are questions and others answers that contain a text.
func count(answers io.Reader, messages int, text string) (questions, others int) {
	scanner := bufio.NewScanner(answers)
	scanner.Buffer(nil, 1<<20)
	for questions+others < messages && scanner.Scan() {
		switch line := scanner.Text(); {
		case strings.Contains(line, "elicitation/create"):
			questions++
		case strings.HasPrefix(line, "data:") && strings.Contains(line, text):
			others++
		}
	}
	return questions, others
}

// TestAttackQuestionsOfABatch: the limit on waiting calls holds for the calls of one batch, too. A batch had 1,024 of
// them, which took two goroutines and 27 KB each.
func TestAttackQuestionsOfABatch(t *testing.T) {
	for name, test := range map[string]struct{ calls, end int }{"guarded": {60, 44}, "control: as many as may wait": {16, 0}} {
		t.Run(name, func(t *testing.T) {
			wipe, wiped := newWipe(t)
			a := newAsking(t, newWorld(t, mcp.Options{}, wipe))
			var batch []string
			for i := range test.calls {
				batch = append(batch, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wipe","arguments":{"path":"/"}}}`, i))
			}
			ctx, leave := context.WithTimeout(t.Context(), 20*time.Second)
			defer leave()
			answers := a.send(ctx, t, "["+strings.Join(batch, ",")+"]")
			defer answers.Close()
			questions, ended := count(answers, test.calls+test.end, "too many calls wait")
			assert.Equal(t, test.calls, questions)
			assert.Equal(t, test.end, ended)
			assert.Zero(t, wiped.Load())
		})
	}
}

// TestDrainEndsQuestions: a server that stops does not wait for users, and tells their clients.
func TestDrainEndsQuestions(t *testing.T) {
	wipe, _ := newWipe(t)
	w := newWorld(t, mcp.Options{}, wipe)
	a := newAsking(t, w)
	answers := a.send(t.Context(), t, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe","arguments":{"path":"/"}}}`)
	defer answers.Close()
	asked, _ := count(answers, 1, "")
	require.Equal(t, 1, asked)
	began := time.Now()
	require.NoError(t, w.server.Drain(t.Context()))
	assert.Less(t, time.Since(began), 10*time.Second)
	_, told := count(answers, 1, "the server is being stopped")
	assert.Equal(t, 1, told)
}

// TestAttackListens: a client of an earlier revision, whose subscriptions last as long as its session, cannot make any,
// and one over lines not many. 8,000 of them held 1.3 GB when no connection was open.
func TestAttackListens(t *testing.T) {
	t.Run("over HTTP", func(t *testing.T) {
		a := newAsking(t, newWorld(t, mcp.Options{}))
		for _, body := range []string{listen, "[" + listen + "]"} {
			answers := a.send(t.Context(), t, body)
			defer answers.Close()
			text, err := io.ReadAll(answers)
			require.NoError(t, err)
			assert.Contains(t, string(text), "-32601")
		}
	})
	t.Run("over lines", func(t *testing.T) {
		c := openLines(t, newWorld(t, mcp.Options{}))
		of := func(id int) string { return strings.Replace(listen, `"id":3`, fmt.Sprintf(`"id":%d`, id), 1) }
		for id := range 16 {
			c.send(of(100 + id))
			assert.Contains(t, c.line(), "notifications/subscriptions/acknowledged", id)
		}
		c.send(of(200))
		assert.Contains(t, c.line(), `"id":200,"error"`)
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":100}}`)
		assert.Contains(t, c.line(), `"id":100,"result"`)
		c.send(of(201))
		assert.Contains(t, c.line(), "notifications/subscriptions/acknowledged", "the control: one was cancelled")
	})
}

package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/mcp"
	"github.com/caisson-run/caisson/tool"
)

// slowly is an answer that its client takes when it likes.
type slowly struct {
	http.ResponseWriter
	once  sync.Once
	begun chan struct{} // closed when the client has the header
	take  chan struct{} // closed when it takes the rest
}

func newSlowly() *slowly {
	return &slowly{ResponseWriter: httptest.NewRecorder(), begun: make(chan struct{}), take: make(chan struct{})}
}

func (s *slowly) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.begun) })
	<-s.take
	return s.ResponseWriter.Write(p)
}

// TestAttackMessagesInTheQueue: what a client has sent counts for as long as the server holds it. The queue of a
// session stands still while its client does not take the answer to initialize. Meanwhile messages that need no answer
// were accepted with 202, and calls were held whose clients had disconnected: 4 GB in a minute, with one token. The
// control is a session whose client takes its answers.
func TestAttackMessagesInTheQueue(t *testing.T) {
	note := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1,"message":"` + strings.Repeat("y", 60<<10) + `"}}`
	for name, test := range map[string]struct {
		first bool // it is the first initialize that is not read
		body  string
		leave bool // the client disconnects
	}{
		"a notification":                        {false, note, false},
		"a notification after the first answer": {true, note, false},
		"a call whose client has gone":          {false, `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"hello","arguments":{}}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mcp.Options{}, newFake(t, "hello", nil, says(tool.Result{Success: true, Output: "hello"})))
			mine := auth.With(t.Context(), auth.Caller{ID: "1", Tenant: "acme", Scopes: everything})
			send := func(ctx context.Context, answer http.ResponseWriter, session, body string) (returned chan struct{}) {
				r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Accept", "application/json, text/event-stream")
				if session != "" {
					r.Header.Set("Mcp-Session-Id", session)
				}
				returned = make(chan struct{})
				go func() {
					defer close(returned)
					w.server.ServeHTTP(answer, r)
				}()
				return returned
			}
			begin := func() string {
				answer := httptest.NewRecorder()
				<-send(mine, answer, "", initializeBody)
				return answer.Header().Get("Mcp-Session-Id")
			}
			session, unread := "", newSlowly()
			if !test.first {
				session = begin()
			}
			blocked := send(mine, unread, session, strings.Replace(initializeBody, `"id":1`, `"id":"again"`, 1))
			<-unread.begun
			if test.first {
				session = unread.Header().Get("Mcp-Session-Id")
			}
			ctx, leave := context.WithCancel(mine)
			defer leave()
			answer := httptest.NewRecorder()
			returned := send(ctx, answer, session, test.body)
			if test.leave {
				leave()
			}
			control := begin()
			for range 50 {
				accepted := httptest.NewRecorder()
				<-send(mine, accepted, control, note)
				require.Equal(t, http.StatusAccepted, accepted.Code)
			}
			select {
			case <-returned:
				assert.Fail(t, "the request has ended, and the server holds its messages")
			default:
			}
			close(unread.take)
			for _, end := range []chan struct{}{blocked, returned} {
				select {
				case <-end:
				case <-time.After(30 * time.Second):
					require.Fail(t, "it does not end")
				}
			}
			if !test.leave {
				assert.Equal(t, http.StatusAccepted, answer.Code)
			}
		})
	}
}

// TestAttackUnreadAnswersAndNotifications: nothing more is read from a client over lines that does not read its
// answers, notifications neither, of which the server held any number. The control is a client that reads them.
func TestAttackUnreadAnswersAndNotifications(t *testing.T) {
	const all = 200
	w := newWorld(t, mcp.Options{})
	note := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1,"message":"` + strings.Repeat("y", 60<<10) + `"}}`
	sends := func(c *client) (sent *atomic.Int64, done chan struct{}) {
		sent, done = new(atomic.Int64), make(chan struct{})
		go func() {
			defer close(done)
			c.send(strings.Replace(initializeBody, `"id":1`, `"id":"again"`, 1))
			for range all {
				c.send(note)
				sent.Add(1)
			}
		}()
		return sent, done
	}
	silent := openLines(t, w)
	sent, done := sends(silent)
	reads := openLines(t, w)
	_, control := sends(reads)
	assert.Contains(t, reads.line(), "the session has already begun")
	<-control
	assert.Less(t, sent.Load(), int64(20))
	assert.Contains(t, silent.line(), "the session has already begun")
	<-done
	assert.Equal(t, int64(all), sent.Load())
	for i, c := range []*client{silent, reads} {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
		assert.Contains(t, noerr.Get(c.lines.ReadString('\n'))(t), `"result"`)
	}
}

// TestAttackAnswersOfABatch: no answer waits for another of its batch. The server held those of a batch, of any length,
// until the last was there, and did not count them: 3 GB for a client that reads all that it is sent. The control is
// the last answer, which comes in its time.
func TestAttackAnswersOfABatch(t *testing.T) {
	const others = 20
	for name, last := range map[string]string{
		"a call":         `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"wait","arguments":{}}}`,
		"a subscription": listen,
		"a notification": `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, // which has no answer
	} {
		t.Run(name, func(t *testing.T) {
			let := make(chan struct{})
			wait := newFake(t, "wait", nil, func(ctx context.Context, _ tool.Invocation) tool.Result {
				select {
				case <-let:
				case <-ctx.Done():
				}
				return tool.Result{Success: true, Output: "waited"}
			})
			c := openLines(t, newWorld(t, mcp.Options{}, wait))
			batch := []string{last}
			for i := range others {
				batch = append(batch, fmt.Sprintf(`{"jsonrpc":"2.0","id":"r%d","method":"tools/list"}`, i))
			}
			c.send("[" + strings.Join(batch, ",") + "]")
			answers := make(chan string)
			go func() {
				defer close(answers)
				for range others {
					line := c.line()
					for strings.Contains(line, `"method":"notifications/`) {
						line = c.line()
					}
					answers <- line
				}
			}()
			for range others {
				select {
				case answer := <-answers:
					require.True(t, strings.HasPrefix(answer, `{"jsonrpc":"2.0","id":"r`), answer)
				case <-time.After(10 * time.Second):
					require.Fail(t, "the answers are held")
				}
			}
			<-answers
			close(let)
			switch name {
			case "a call":
				assert.Contains(t, c.line(), `"text":"waited"`)
			case "a subscription":
				c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
			}
			c.send(`{"jsonrpc":"2.0","id":"after","method":"ping"}`)
			for line := ""; !strings.Contains(line, `"id":"after","result"`); {
				line = c.line()
				require.NotEmpty(t, line)
			}
		})
	}
}

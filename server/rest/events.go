package rest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/server/internal/memory"
	"github.com/caisson-run/caisson/server/internal/problem"
)

// events writes server-sent events to one client. It begins with the first event, so that an error before it is an
// ordinary answer, and says something at least once a heartbeat from then on. It is safe for concurrent use.
type events struct {
	ctx     context.Context
	w       http.ResponseWriter
	control *http.ResponseController
	every   time.Duration
	room    int // bytes reserved for an event; only the sending goroutine uses it

	mu     sync.Mutex
	beat   *time.Timer // nil before the first event
	last   int64       // the id of the last event
	open   bool
	broken bool
	ended  bool
}

func (x *exchange) newEvents() *events {
	x.streams = true
	return &events{ctx: x.request.Context(), w: x.w, control: http.NewResponseController(x.w),
		every: x.api.options.Heartbeat}
}

// begin tells the client that the stream is open, before there is an event.
func (e *events) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.write(func() error { return nil })
}

// begun reports whether the client has been sent anything.
func (e *events) begun() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open
}

// reserve waits until there is room for an event of so many bytes in the memory of the request. It returns false if the
// client has gone.
func (e *events) reserve(bytes int) bool {
	if bytes <= e.room {
		return true
	}
	if memory.Replace(e.ctx, bytes) != nil {
		return false
	}
	e.room = bytes
	return true
}

// send writes an event with the next id. It returns false if the client has gone.
func (e *events) send(name string, data []byte) bool {
	if !e.reserve(len(data)) {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.event(e.last+1, name, data)
}

// sendAs writes an event with an id of its own.
func (e *events) sendAs(id int64, name string, data []byte) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.event(id, name, data)
}

func (e *events) event(id int64, name string, data []byte) bool {
	e.last = id
	return e.write(func() error {
		if _, err := io.WriteString(e.w, "id: "+strconv.FormatInt(id, 10)+"\n"); err != nil {
			return err
		}
		return dialects.WriteEvent(e.w, dialects.Event{Name: name, Data: data})
	})
}

// fail writes an event that says why the stream ends early.
func (e *events) fail(p problem.Problem) {
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	data, err := json.Marshal(p)
	if err == nil {
		e.send("error", data)
	}
}

// start writes the headers, if that has not been done, and has heartbeats follow.
func (e *events) start() {
	if e.open {
		return
	}
	e.open = true
	e.beat = time.AfterFunc(e.every, e.heartbeat)
	header := e.w.Header()
	header.Set("Content-Type", eventStream)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // proxies must not collect events
	header.Set("X-Content-Type-Options", "nosniff")
	e.w.WriteHeader(http.StatusOK)
}

// write has something written, and flushes. How long a reader may take is up to the HTTP server. The caller must hold
// e.mu.
func (e *events) write(text func() error) bool {
	if e.broken || e.ended {
		return false
	}
	e.start()
	err := text()
	if err == nil {
		err = e.control.Flush()
	}
	e.broken = err != nil
	e.beat.Reset(e.every)
	return err == nil
}

// heartbeat writes a comment, which clients skip.
func (e *events) heartbeat() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.write(func() error {
		_, err := io.WriteString(e.w, ": heartbeat\n\n")
		return err
	})
}

// end stops the heartbeat. Nothing is written afterwards.
func (e *events) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	if e.beat != nil {
		e.beat.Stop()
	}
}

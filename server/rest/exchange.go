package rest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/internal/memory"
	"github.com/caisson-run/caisson/server/internal/problem"
	"github.com/caisson-run/caisson/server/internal/standing"
)

// exchange is one request that a route serves.
type exchange struct {
	api     *API
	route   *route
	w       http.ResponseWriter
	request *http.Request
	caller  auth.Caller
	query   url.Values
	body    []byte
	streams bool // the answer is a stream of events, which may have begun
	// begun makes the answer to a request that has had its effect, also if it cannot be given; for a repetition of the
	// request. It is nil before.
	begun func() (reply, error)
}

// reply is the whole answer to a request. A handler that has streamed its answer returns what it would have been
// otherwise, for a repeated request.
type reply struct {
	status   int
	location string
	body     []byte // JSON; none if it is empty. It may be kept, so that it is not changed
	streamed bool
	counted  bool   // the body's memory is reserved, or kept anyway
	runID    string // the id of the run that the body is to describe, which has not been made; empty for a whole reply
}

// answer returns a reply with a value as JSON.
func answer(status int, value any) (reply, error) {
	body, err := jsontext.Encode(value)
	return reply{status: status, body: body}, err
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// refusal says why a request is refused, in words for the caller.
type refusal struct {
	status int
	detail string
	title  string // empty for the status's own words
	header [2]string
}

func (r *refusal) Error() string { return r.detail }

// refuse returns a refusal.
func refuse(status int, format string, arguments ...any) *refusal {
	return &refusal{status: status, detail: fmt.Sprintf(format, arguments...)}
}

// dispatch serves the routes of one path.
func (a *API) dispatch(methods map[string]*route) http.Handler {
	allow := allowHeader(methods)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route := methods[r.Method]
		if get := methods[http.MethodGet]; r.Method == http.MethodHead && get != nil && !get.onlyEvents {
			route = get // net/http drops the body
		}
		if route == nil {
			w.Header().Set("Allow", allow)
			problem.Write(w,
				problem.Problem{Status: http.StatusMethodNotAllowed, Detail: "the methods of this path are " + allow})
			return
		}
		x := &exchange{api: a, route: route, w: w, request: r}
		defer x.catch()
		answer, err := x.serve()
		switch {
		case err != nil:
			x.fail(err)
		case !answer.streamed:
			x.write(answer)
		}
	})
}

// catch answers a request whose handler panicked. A stream that has begun is broken off.
func (x *exchange) catch() {
	panicked := recover()
	if panicked == nil {
		return
	}
	if panicked == http.ErrAbortHandler {
		panic(panicked)
	}
	failure := x.refusalOf(fmt.Errorf("panic: %v\n%s", panicked, debug.Stack()))
	if x.streams {
		panic(http.ErrAbortHandler)
	}
	problem.Write(x.w, failure.problem)
}

// serve checks who asks, reads the body and has the route's handler answer.
func (x *exchange) serve() (reply, error) {
	if x.route.scope == "" {
		return x.route.handle(x)
	}
	caller, ok := auth.From(x.request.Context())
	if !ok {
		return reply{}, &refusal{status: http.StatusUnauthorized, detail: "send a token: Authorization: Bearer TOKEN",
			header: [2]string{"WWW-Authenticate", "Bearer"}}
	}
	if !caller.May(x.route.scope) {
		return reply{}, refuse(http.StatusForbidden, "the token lacks the scope %s", x.route.scope)
	}
	x.caller = caller
	if err := x.readQuery(); err != nil {
		return reply{}, err
	}
	if x.route.body == "" {
		return x.handle()
	}
	if x.route.writes && x.api.isStopped() {
		return reply{}, errStopping
	}
	if err := x.read(); err != nil {
		return reply{}, err
	}
	if x.route.writes {
		if given := x.request.Header.Values(keyHeader); len(given) > 0 {
			return x.serveIdempotent(given)
		}
	}
	return x.handle()
}

// handle has the route's handler answer, if the caller may still act: its token may have been revoked while the body
// arrived, or while an earlier request with the same key was answered.
func (x *exchange) handle() (reply, error) {
	if err := standing.Check(x.request.Context()); err != nil {
		return reply{}, err
	}
	if x.route.method == http.MethodGet && !x.route.onlyEvents || x.route.scope == auth.Read && x.route.body != "" {
		ctx, cancel := context.WithTimeout(x.request.Context(), maxWait)
		defer cancel()
		return x.made(ctx, func() (reply, error) { return x.route.handle(x) })
	}
	return x.route.handle(x)
}

// maxMaking is the number of a tenant's answers of any length that are made at a time. More wait: making megabytes
// takes a second, and the length of an answer is not known before.
const maxMaking = 2

// maxWait is the longest wait of a request without effects for room for its answer.
const maxWait = 5 * time.Second

// made makes an answer that may be long, as soon as the tenant has few others in the making, and reserves its memory.
// An answer for which there is no room is discarded, and made again when there is. A request that waits for room keeps
// neither its answer nor its slot, since the requests that have the memory may need a slot.
func (x *exchange) made(ctx context.Context, makeReply func() (reply, error)) (reply, error) {
	for {
		r, err := x.make(ctx, makeReply)
		if err != nil || r.counted {
			return r, err
		}
		if err := memory.Replace(ctx, len(r.body)); err != nil {
			return reply{}, err
		}
	}
}

// make makes an answer as soon as the tenant has few others in the making, and reserves its memory if there is room.
func (x *exchange) make(ctx context.Context, makeReply func() (reply, error)) (reply, error) {
	slots := x.api.slots(x.caller)
	select {
	case slots <- struct{}{}:
	default:
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return reply{}, fmt.Errorf("%w: %w", memory.ErrFull, ctx.Err())
		}
	}
	defer func() { <-slots }()
	r, err := makeReply()
	if err == nil && !r.counted {
		r.counted = memory.TryReplace(ctx, len(r.body))
	}
	return r, err
}

// slots returns the places in which answers to a caller, and to those who share its bounds, are made.
func (a *API) slots(c auth.Caller) chan struct{} {
	found, _ := a.making.LoadOrStore(memory.Sharer(c), make(chan struct{}, maxMaking))
	return found.(chan struct{})
}

// count reserves the memory of the body, once, in place of the memory that was reserved to make it.
func (r *reply) count(ctx context.Context) error {
	if r.counted {
		return nil
	}
	r.counted = true
	return memory.Replace(ctx, len(r.body))
}

var errStopping = &refusal{status: http.StatusServiceUnavailable, detail: "the server is stopping",
	header: [2]string{"Retry-After", "5"}}

// read reads the body.
func (x *exchange) read() error {
	r := x.request
	if said := r.Header.Get("Content-Type"); said != "application/json" {
		if media, _, err := mime.ParseMediaType(said); err != nil || media != "application/json" {
			return refuse(http.StatusUnsupportedMediaType, "the body must be JSON: Content-Type: application/json")
		}
	}
	if said := r.Header.Get("Content-Encoding"); said != "" && said != "identity" {
		return refuse(http.StatusUnsupportedMediaType, "the body must not be compressed: leave out Content-Encoding")
	}
	most := x.api.options.Body
	if r.ContentLength > most {
		return tooLarge(most)
	}
	var body bytes.Buffer
	if r.ContentLength > 0 { // which the client may never send
		body.Grow(int(min(r.ContentLength, firstGrowth)) + bytes.MinRead)
	}
	_, err := body.ReadFrom(http.MaxBytesReader(x.w, r.Body, most))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge(large.Limit)
	case errors.Is(err, memory.ErrFull), errors.Is(err, standing.ErrUnreadable):
		return err
	case err != nil:
		if ended := standing.Check(r.Context()); ended != nil {
			return ended
		}
		return refuse(http.StatusBadRequest, "the body did not arrive whole, or not in time")
	}
	x.body = body.Bytes()
	return nil
}

// firstGrowth is the size of the buffer that a body gets before it has arrived, in bytes.
const firstGrowth = 64 << 10

func tooLarge(most int64) error {
	return refuse(http.StatusRequestEntityTooLarge, "the body is longer than %d bytes", most)
}

// write writes a reply.
func (x *exchange) write(r reply) {
	if err := r.count(x.request.Context()); err != nil {
		x.fail(err)
		return
	}
	header := x.w.Header()
	header["Cache-Control"], header["X-Content-Type-Options"] = noStore, noSniff
	if r.location != "" {
		header.Set("Location", r.location)
	}
	if len(r.body) == 0 {
		x.w.WriteHeader(r.status)
		return
	}
	header["Content-Type"] = jsonType
	header["Content-Length"] = []string{strconv.Itoa(len(r.body) + 1)}
	x.w.WriteHeader(r.status)
	_, _ = x.w.Write(r.body) // the client may have gone
	_, _ = x.w.Write(lineEnd)
}

// The values of headers that every answer has, which net/http does not change.
var (
	jsonType = []string{"application/json"}
	noStore  = []string{"no-store"}
	noSniff  = []string{"nosniff"}
	lineEnd  = []byte("\n")
)

// fail answers with the problem that an error is.
func (x *exchange) fail(err error) {
	r := x.refusalOf(err)
	if r.header[0] != "" {
		x.w.Header().Set(r.header[0], r.header[1])
	}
	problem.Write(x.w, r.problem)
}

// failure is a refusal as it is written.
type failure struct {
	problem problem.Problem
	header  [2]string
}

// refusalOf returns what the caller is told of an error: the reason for a refusal, and an id of anything else, under
// which the log has the cause.
func (x *exchange) refusalOf(err error) failure {
	if cause := context.Cause(x.request.Context()); standing.IsRefusal(cause) {
		err = cause // whatever else followed from it
	}
	var refused *refusal
	if !errors.As(err, &refused) {
		refused = refusalFor(err)
	}
	if refused != nil && refused.status == http.StatusTooManyRequests {
		refused.header = [2]string{"Retry-After", "5"}
	}
	if refused != nil {
		return failure{problem.Problem{Status: refused.status, Title: refused.title, Detail: refused.detail}, refused.header}
	}
	id := newID("err_")
	x.api.options.Logger.ErrorContext(x.request.Context(), "request failed", "id", id, "route", x.route.id, "tenant",
		x.caller.Tenant, "token", x.caller.ID, "err", err)
	if errors.Is(err, standing.ErrUnreadable) {
		return failure{problem: problem.Problem{Status: http.StatusServiceUnavailable, Detail: standing.LaterDetail, ID: id}}
	}
	return failure{problem: problem.Problem{Status: http.StatusInternalServerError,
		Detail: "the server failed; its log has the cause under this id", ID: id}}
}

// refusalFor returns the refusal that an error of another package stands for, or nil if the error is the server's own
// failure.
func refusalFor(err error) *refusal {
	var wrong *executor.Error
	switch {
	case standing.IsRefusal(err):
		return &refusal{status: http.StatusUnauthorized, detail: "the token is unknown, has expired or was revoked",
			header: [2]string{"WWW-Authenticate", `Bearer realm="caisson", error="invalid_token"`}}
	case errors.Is(err, memory.ErrFull):
		return refuse(http.StatusTooManyRequests, "the open requests of the tenant, or of all, have too many bytes in "+
			"bodies, or in answers that were not taken; try again later")
	case errors.Is(err, executor.ErrInvalidBatch) && errors.As(err, &wrong):
		return refuse(http.StatusUnprocessableEntity, "%s", wrong.Err)
	case errors.Is(err, agents.ErrNotFound):
		return refuse(http.StatusForbidden, "the token's agent does not exist, so it may call no tools")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return refuse(http.StatusServiceUnavailable, "the request ended before it was answered")
	}
	return nil
}

// newID returns a new unguessable id.
func newID(prefix string) string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // it never fails
	return prefix + hex.EncodeToString(random[:])
}

// wantsEvents reports whether the client asks for server-sent events.
func (x *exchange) wantsEvents() bool {
	for _, said := range x.request.Header.Values("Accept") {
		for one := range strings.SplitSeq(said, ",") {
			if media, _, _ := strings.Cut(one, ";"); strings.TrimSpace(media) == eventStream {
				return true
			}
		}
	}
	return false
}

const eventStream = "text/event-stream"

// keyHeader is the header by which a client says that a request is the same as an earlier one.
const keyHeader = "Idempotency-Key"

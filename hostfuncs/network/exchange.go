package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/journal"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/tool"
)

// hop is one HTTP request to send, before secrets are injected.
type hop struct {
	method   string
	location *location
	header   http.Header // the guest's
	body     []byte      // the guest's
}

// exchange is one request of a guest, including its redirects.
type exchange struct {
	session *Session
	client  *Client
	ctx     context.Context
	cancel  context.CancelFunc
	hop     hop
	from    *location // what redirected to the hop; nil for the first

	// Fields of the record.
	entry    journal.Entry
	target   string
	started  time.Time
	bytes    int64
	allowed  bool
	statuses []string

	// done is closed when the fields below are set.
	done     chan struct{}
	response Response
	failed   *hostfuncs.Error
}

func (s *Session) newExchange() *exchange {
	return &exchange{
		session: s, client: s.client, target: "an invalid request", started: time.Now(), done: make(chan struct{}),
	}
}

// begin counts and checks a request, and returns an exchange that is ready to run.
func (s *Session) begin(ctx context.Context, request Request) (*exchange, error) {
	e := s.newExchange()
	var failed *hostfuncs.Error
	e.entry, failed = s.admit(e.started)
	if failed == nil {
		failed = e.prepare(ctx, request)
	}
	if failed != nil {
		e.finish(failed)
		return nil, failed
	}
	return e, nil
}

// check reads a request and checks it against the permission. It leaves no trace if it succeeds.
func (e *exchange) check(ctx context.Context, request Request) *hostfuncs.Error {
	if err := e.read(request); err != nil {
		return invalid(err.Error())
	}
	e.ctx = ctx // for the log
	if failed := e.authorize(); failed != nil {
		return failed
	}
	return e.checkPlaces()
}

func (e *exchange) prepare(ctx context.Context, request Request) *hostfuncs.Error {
	if failed := e.check(ctx, request); failed != nil {
		return failed
	}
	// The body counts before it is sent, since the host holds the bodies of all requests in flight.
	if failed := e.session.takeAll(len(e.hop.body)); failed != nil {
		return failed
	}
	timeout := request.Timeout
	if _, bounded := ctx.Deadline(); !bounded && timeout <= 0 {
		timeout = defaultTimeout
	}
	if timeout > 0 {
		e.ctx, e.cancel = context.WithTimeout(ctx, timeout)
	} else {
		e.ctx, e.cancel = context.WithCancel(ctx)
	}
	if failed := e.enter(); failed != nil {
		e.session.giveBack(len(e.hop.body))
		return failed
	}
	return nil
}

func (e *exchange) read(request Request) error {
	method, err := readMethod(request.Method)
	if err != nil {
		return err
	}
	to, err := parseURL(request.URL)
	if err != nil {
		return err
	}
	e.target = method + " " + e.client.shown(to)
	header, err := readHeaders(request.Headers)
	if err != nil {
		return err
	}
	e.hop = hop{method, to, header, request.Body}
	return nil
}

// checkPlaces denies the guest's headers in the place of a secret, and those that a server may mistake for one.
func (e *exchange) checkPlaces() *hostfuncs.Error {
	if e.client.secrets == nil {
		return nil
	}
	to := e.hop.location
	for _, place := range e.client.secrets.Places(to.Origin) {
		for name := range e.hop.header {
			if place.Header != "" && permission.FoldHeader(name) == permission.FoldHeader(place.Header) {
				rule := fmt.Sprintf("the host fills in the header %s for %s; the tool may not",
					http.CanonicalHeaderKey(place.Header), hostText(to))
				return e.deny(tool.Denial{Permission: "network", Rule: rule})
			}
		}
	}
	return nil
}

func (e *exchange) enter() *hostfuncs.Error {
	failed := e.session.running.enter(e)
	if failed == nil {
		if failed = e.client.running.enter(e); failed != nil {
			e.session.running.leave(e)
		}
	}
	if failed != nil {
		e.cancel()
	}
	return failed
}

// run sends the request and follows its redirects. It must be called once.
func (e *exchange) run() {
	defer e.session.running.leave(e)
	defer e.client.running.leave(e)
	defer e.cancel()
	defer close(e.done)
	e.finish(e.exchange())
	e.hop.body = nil // free it: the response may be received much later
}

func (e *exchange) exchange() *hostfuncs.Error {
	for redirects := 0; ; redirects++ {
		answer, failed := e.send()
		if failed != nil {
			return failed
		}
		e.statuses = append(e.statuses, strconv.Itoa(answer.StatusCode))
		if !isRedirect(answer) {
			return e.receive(answer)
		}
		answer.Body.Close()
		if redirects == maxRedirects {
			return limit("http_redirects", maxRedirects, fmt.Sprintf("there are more than %d redirects", maxRedirects))
		}
		if failed := e.follow(answer); failed != nil {
			return failed
		}
	}
}

// send sends one allowed hop, with the secrets of its origin.
func (e *exchange) send() (*http.Response, *hostfuncs.Error) {
	if e.from != nil { // the first hop's body is already reserved
		if failed := e.session.takeAll(len(e.hop.body)); failed != nil {
			return nil, failed
		}
	}
	e.bytes += int64(len(e.hop.body))
	request, failed := e.request()
	if failed != nil {
		return nil, failed
	}
	answer, err := e.session.roundTrip(e.ctx, e.hop.location, request)
	if err != nil {
		return nil, e.ioError(err)
	}
	if answer.StatusCode < 200 {
		answer.Body.Close()
		return nil, e.ioError(fmt.Errorf("the server sent the unexpected status %d", answer.StatusCode))
	}
	return answer, nil
}

func (e *exchange) request() (*http.Request, *hostfuncs.Error) {
	target := e.hop.location.url
	request := (&http.Request{Method: e.hop.method, URL: &target, Header: e.hop.header.Clone()}).WithContext(e.ctx)
	if request.Header.Get("User-Agent") == "" {
		request.Header.Set("User-Agent", "caisson")
	}
	body := e.hop.body
	if e.client.secrets != nil {
		to := e.hop.location
		if len(e.client.secrets.Places(to.Origin)) > 0 {
			wholeAnswer(request.Header)
		}
		for _, receipt := range e.client.secrets.Unsent(to.Origin) {
			e.session.Journal.Deny(receipt, nil)
		}
		var err error
		if body, err = e.client.secrets.Inject(request, body); err != nil {
			if e.ctx.Err() != nil {
				return nil, e.ioError(e.ctx.Err())
			}
			return nil, invalid(e.client.maskText(err.Error()))
		}
	}
	acceptGzip(request)
	setBody(request, body)
	return request, nil
}

func (e *exchange) finish(failed *hostfuncs.Error) {
	e.failed = failed
	call := tool.HostCall{
		Kind: requestKind, Began: e.started, Target: e.target, Bytes: e.bytes, Duration: time.Since(e.started),
		Allowed: e.allowed, Status: strings.Join(e.statuses, "→"),
	}
	if failed != nil {
		call.Status = statusOf(failed)
		call.Allowed = e.allowed && failed.Kind != hostfuncs.ErrDenied
	}
	e.session.Journal.Change(e.entry, func(listed *tool.HostCall) { *listed = call })
}

// result returns the outcome. The exchange must be done.
func (e *exchange) result() (Response, error) {
	if e.failed != nil {
		return Response{}, e.failed
	}
	return e.response, nil
}

// deny keeps a receipt for the hop and returns an error with it.
func (e *exchange) deny(denial tool.Denial) *hostfuncs.Error {
	denial.Value = e.client.shown(e.hop.location)
	if e.from != nil {
		denial.Rule += fmt.Sprintf(" (%s redirected there)", e.from.Origin)
	}
	if allow := string(denial.Allow.Manifest) + "\n" + string(denial.Allow.Grant); e.client.maskText(allow) != allow {
		denial.Allow = tool.Allow{} // a server redirected to a path that holds a secret
	}
	e.session.Journal.Deny(denial, nil)
	return &hostfuncs.Error{Op: "request", Kind: hostfuncs.ErrDenied, Message: denial.Rule, Denial: &denial}
}

func (e *exchange) authorize() *hostfuncs.Error {
	if p := e.client.permission; !p.allows(e.hop.location, e.hop.method) {
		return e.deny(p.receipt(e.hop.location, e.hop.method))
	}
	e.allowed = true
	return nil
}

// ioError logs the cause for the operator and returns the error that the guest may see.
func (e *exchange) ioError(err error) *hostfuncs.Error {
	if why, refused := errors.AsType[*refusal](err); refused && e.ctx.Err() == nil {
		e.client.log(e.ctx, slog.LevelWarn, "no address may be connected to", e.target, err)
		return e.deny(e.client.permission.addressReceipt(e.hop.location, e.hop.method, why))
	}
	failed := failure(e.ctx, err)
	e.client.log(e.ctx, slog.LevelDebug, "a network request failed", e.target, failed.Cause)
	return failed
}

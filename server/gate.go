package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caisson-run/caisson/internal/rates"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/internal/memory"
	"github.com/caisson-run/caisson/server/internal/problem"
	"github.com/caisson-run/caisson/server/internal/standing"
)

// routes returns the handler of all requests.
func (s *Server) routes() (http.Handler, error) {
	mux := http.NewServeMux()
	open := http.NewServeMux() // what needs no token
	open.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	open.HandleFunc("GET /readyz", s.ready)
	if s.options.Metrics != nil {
		mux.Handle("GET /metrics", s.operatorOnly(s.options.Metrics))
	}
	mux.HandleFunc("/", nothingHere)
	for _, d := range s.doors {
		if err := handle(mux, d); err != nil {
			return nil, &Error{err}
		}
	}
	g := &gate{
		server: s,
		callers: rates.New[string](rates.Limit{Of: "requests", PerSecond: s.options.Limits.Rate,
			Burst: s.options.Limits.Burst, Keys: maxKeys}),
		failures: rates.New[string](rates.Limit{Of: "refused tokens", PerSecond: s.options.Limits.Failures,
			Burst: failureBurst, Keys: maxKeys}),
		underway: newInFlight(s.options.Limits.Requests), memory: newMemory(s.options.Limits.BodyBytes),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !connectionFor(r).handles() {
			panic(http.ErrAbortHandler)
		}
		if encryption := connectionFor(r).encryption(); encryption != nil {
			r.TLS = encryption
		}
		fields := fieldsOf(r)
		if fields > maxFields {
			r.Trailer = nil // a map of thousands of names would be kept until the request has been answered
		}
		body := newBody(w, r, s.options.Limits)
		answer := &answerWriter{ResponseWriter: w, connection: connectionFor(r), body: body}
		defer answer.begins(http.StatusOK)
		w = answer
		defer s.recovered(w, r)
		if body != nil {
			r = r.WithContext(r.Context()) // net/http goes by the body that its own request has
			r.Body = body
		}
		if !g.admitsPage(w, r) {
			return
		}
		if fields > maxFields {
			s.refuse(w, r, problem.Problem{Status: http.StatusRequestHeaderFieldsTooLarge, Detail: manyFields}, "fields")
			return
		}
		plain := isPlain(r)
		if _, pattern := open.Handler(r); plain && pattern != "" {
			open.ServeHTTP(w, r)
			return
		}
		if r, left := g.authenticate(w, r); r != nil {
			defer left()
			if !plain {
				nothingHere(w, r)
				return
			}
			mux.ServeHTTP(w, r)
		}
	}), nil
}

// maxFields is the maximum number of fields of a header. Short ones take twenty times their length, for as long as the
// request waits.
const maxFields = 200

// manyFields is what clients are told that send more.
var manyFields = fmt.Sprintf("the header has more than %d fields; send fewer", maxFields)

// fieldsOf returns how many fields the header of a request has, and names of fields to come after its body.
func fieldsOf(r *http.Request) int {
	n := len(r.Trailer)
	for _, values := range r.Header {
		n += len(values)
	}
	return n
}

// isPlain reports whether a request is for a path that [http.ServeMux] takes as it is. It answers others itself, with
// redirections to paths that they may have meant.
func isPlain(r *http.Request) bool {
	clean := path.Clean(r.URL.Path)
	return r.Method != http.MethodConnect && clean[0] == '/' && (r.URL.Path == clean || r.URL.Path == clean+"/")
}

func nothingHere(w http.ResponseWriter, _ *http.Request) {
	const detail = "there is nothing here; GET /openapi.json lists what there is"
	problem.Write(w, problem.Problem{Status: http.StatusNotFound, Detail: detail})
}

// handle registers a door. Patterns that clash are the program's mistake, which ServeMux panics for.
func handle(mux *http.ServeMux, d Endpoint) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: %v", ErrInvalidOptions, cause)
		}
	}()
	mux.Handle(d.Pattern, d.Handler)
	if path, ok := strings.CutSuffix(d.Pattern, "/"); ok && path != "" {
		mux.Handle(path, d.Handler) // else ServeMux redirects to the pattern
	}
	return nil
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // the caller may have gone
}

// ready answers whether to send requests here. It does not say why not, since it needs no token.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if s.stopping.Load() {
		say(w, http.StatusServiceUnavailable, "stopping")
		return
	}
	if s.options.Ready != nil {
		if err := s.options.Ready(r.Context()); err != nil {
			if hidden, ok := s.refusals.take(refusalKind{status: http.StatusServiceUnavailable}); ok {
				s.log.WarnContext(r.Context(), "not ready", "err", err, "not_logged", hidden)
			}
			say(w, http.StatusServiceUnavailable, "not ready")
			return
		}
	}
	say(w, http.StatusOK, "ready")
}

// operatorOnly lets in callers of the operator, who see the sum of all tenants.
func (s *Server) operatorOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, _ := auth.From(r.Context()); !c.May(auth.Admin) || c.Tenant != "" {
			s.refuse(w, r, problem.Problem{Status: http.StatusForbidden,
				Detail: "this needs a token without a tenant and with the scope admin"}, "not the operator")
			return
		}
		h.ServeHTTP(w, r)
	})
}

// recovered answers a request whose handler panicked. The details are for the log.
func (s *Server) recovered(w http.ResponseWriter, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(cause)
	}
	s.failed(w, r, "a request failed", "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
}

// refuse answers a request that is not let in, and keeps an audit of it.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, p problem.Problem, why string) {
	s.refusals.log(r, p.Status, why)
	problem.Write(w, p)
}

// failed answers a request that the server cannot handle, or not now. The cause is for the log, which gets a sample of
// many.
func (s *Server) failed(w http.ResponseWriter, r *http.Request, what string, cause ...any) {
	id := uuid.NewString()
	c, _ := auth.From(r.Context())
	p := problem.Problem{Status: http.StatusInternalServerError,
		Detail: "the server failed; its log says why, under this id", ID: id}
	if err, ok := cause[len(cause)-1].(error); ok && errors.Is(err, standing.ErrUnreadable) {
		p.Status, p.Detail = http.StatusServiceUnavailable, standing.LaterDetail
	}
	if hidden, ok := s.refusals.take(refusalKind{p.Status, c.ID}); ok {
		s.log.ErrorContext(r.Context(), what, append(append([]any{"id", id}, described(r, hidden)...), cause...)...)
	}
	problem.Write(w, p)
}

// gate decides who comes in.
type gate struct {
	server            *Server
	callers, failures *rates.Limiter[string]
	underway          *inFlight
	memory            *memory.Bound
}

// Bounds on the bytes of bodies that have arrived, and of answers that clients have not taken, in open requests: of a
// tenant, in bodies of [Limits.BodyBytes], and of all, in tenants that use all of theirs.
const (
	tenantBodies = 4
	tenants      = 4
)

func newMemory(bodyBytes int64) *memory.Bound {
	perTenant := tenantBodies * min(bodyBytes, math.MaxInt64/tenantBodies/tenants)
	return memory.New(perTenant, tenants*perTenant)
}

// maxKeys bounds the callers, and the addresses, that are told apart: any client can add an address.
const maxKeys = 20_000

// failureBurst is the number of refused tokens from an address before it has to wait.
const failureBurst = 20

// admitsPage refuses requests that a page on the web may have made a browser send, and answers a browser
// that asks whether it may send one. It returns whether the request goes on.
func (g *gate) admitsPage(w http.ResponseWriter, r *http.Request) bool {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	if !g.server.isOurs(r.Host) {
		g.server.refuse(w, r, problem.Problem{Status: http.StatusForbidden,
			Detail: "this server is not reached under this name; the operator can allow it"}, "host "+truncate(r.Host))
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		// A browser says of a request without an origin where it comes from.
		if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
			g.server.refuse(w, r, problem.Problem{Status: http.StatusForbidden,
				Detail: "pages of other sites may not use this server"}, "sec-fetch-site "+truncate(site))
			return false
		}
		return true
	}
	header.Add("Vary", "Origin")
	switch {
	case slices.Contains(g.server.options.Origins, origin):
		header.Set("Access-Control-Allow-Origin", origin)
		header.Set("Access-Control-Expose-Headers",
			"Idempotent-Replayed, Location, Mcp-Session-Id, Retry-After, WWW-Authenticate")
	case isSameOrigin(origin, r):
	default:
		g.server.refuse(w, r, problem.Problem{Status: http.StatusForbidden,
			Detail: "pages of this origin may not use this server; the operator can allow it"}, "origin "+truncate(origin))
		return false
	}
	if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
		header.Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE")
		header.Set("Access-Control-Allow-Headers",
			"Authorization, Content-Type, Accept, Idempotency-Key, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version, "+
				"Mcp-Method, Mcp-Name")
		header.Set("Access-Control-Max-Age", "600")
		w.WriteHeader(http.StatusNoContent)
		return false
	}
	return true
}

// isOurs reports whether a Host header names this server: localhost, an address, or one of its names. Only clients of
// HTTP/1.0 send none, such as what checks a server's health, and no browser.
func (s *Server) isOurs(host string) bool {
	if host == "" {
		return true
	}
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.ToLower(strings.Trim(name, "[]")), ".")
	if name == "localhost" || net.ParseIP(name) != nil {
		return true
	}
	return slices.ContainsFunc(s.options.Hosts, func(own string) bool { return strings.EqualFold(own, name) })
}

// isSameOrigin reports whether a page of this server sent the request. The Host was checked before.
func isSameOrigin(origin string, r *http.Request) bool {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return strings.EqualFold(origin, scheme+r.Host)
}

// isOrigin reports whether a browser may write an origin like this: others would match none.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != text || text != strings.ToLower(text) {
		return false
	}
	ownPort, known := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return known && u.Port() != ownPort
}

const dnsLabel = `[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?`

var isHostName = regexp.MustCompile(`^(` + dnsLabel + `\.)*` + dnsLabel + `$`).MatchString

// authenticate returns the request with its caller in the context, and what must be called when its handler has ended;
// or answers it and returns nil. The context ends soon after the caller may no longer act.
func (g *gate) authenticate(w http.ResponseWriter, r *http.Request) (identified *http.Request, left func()) {
	s := g.server
	ctx := r.Context()
	required, err := s.requiresToken(ctx)
	if err != nil {
		s.failed(w, r, "tokens cannot be looked for", "err", err)
		return nil, nil
	}
	caller, check, answered := s.options.Local, func() error { return s.checkOpen(ctx) }, func() {}
	if required {
		if caller, check, answered = g.showsToken(w, r); answered == nil {
			return nil, nil
		}
	}
	r = r.WithContext(standing.With(r.Context(), caller, check))
	if r.ContentLength > s.options.Limits.BodyBytes {
		defer answered()
		w.Header().Set("Connection", "close")
		s.refuse(w, r, problem.Problem{Status: http.StatusRequestEntityTooLarge,
			Detail: fmt.Sprintf("a request may have at most %d bytes", s.options.Limits.BodyBytes)}, "size")
		return nil, nil
	}
	stopChecking := func() {}
	end := connectionFor(r).begin(g.underway.delaysOf(caller), func() {
		stopChecking()
		answered()
	})
	held := g.memory.Open(memoryOf(caller))
	if body, ok := r.Body.(*timedBody); ok {
		body.held = held
	}
	r = r.WithContext(memory.With(r.Context(), held))
	r, stop, stopChecking := s.whileAllowed(w, r, check)
	return r, func() {
		stop()
		held.Close()
		end()
	}
}

// memoryOf returns who shares a bound of memory with the caller. Callers without a token and a tenant, on this machine,
// share that of all.
func memoryOf(c auth.Caller) string {
	if c.Tenant == "" && c.ID == "" {
		return ""
	}
	return memory.Sharer(c)
}

// showsToken returns the caller whose token the request shows, a check of whether the token still works, and what must
// be called when the request has been answered; or answers the request and returns nil.
func (g *gate) showsToken(
	w http.ResponseWriter, r *http.Request,
) (caller auth.Caller, check func() error, answered func()) {
	s := g.server
	text, ok := bearer(r)
	if !ok {
		w.Header().Set("WWW-Authenticate", `Bearer realm="caisson"`)
		s.refuse(w, r, problem.Problem{Status: http.StatusUnauthorized,
			Detail: "send a token: Authorization: Bearer TOKEN"}, "no token")
		return caller, nil, nil
	}
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	var token auth.Token
	ctx := r.Context()
	err := readTokens(ctx, func() (err error) {
		token, err = s.options.Tokens.Check(ctx, text)
		return err
	})
	// For the log, which names a token that has expired or was revoked.
	r = r.WithContext(auth.With(ctx, token.Caller()))
	switch {
	case (standing.IsRefusal(err) || errors.Is(err, auth.ErrDamaged)) && g.waits(w, r, g.failures, address):
		// A token that does not work takes time and a line of the log. Tokens that work do not wait, even if they cannot be
		// read now: others may come from the same address, such as a proxy's.
		return caller, nil, nil
	case standing.IsRefusal(err):
		w.Header().Set("WWW-Authenticate", `Bearer realm="caisson", error="invalid_token"`)
		s.refuse(w, r, problem.Problem{Status: http.StatusUnauthorized,
			Detail: "the token is unknown, has expired or was revoked"}, err.Error())
		return caller, nil, nil
	case err != nil && ctx.Err() != nil: // the client has gone, which says nothing about the ledger
		problem.Write(w, problem.Problem{Status: http.StatusServiceUnavailable,
			Detail: "the request ended before its token was checked"})
		return caller, nil, nil
	case err != nil:
		s.failed(w, r, "tokens cannot be checked", "err", err)
		return caller, nil, nil
	}
	caller = token.Caller()
	if s.options.Caller != nil {
		if caller, err = s.options.Caller(token); err != nil {
			s.refuse(w, r, problem.Problem{Status: http.StatusForbidden,
				Detail: "the token cannot be used with the server's policy; its operator can tell why"}, err.Error())
			return caller, nil, nil
		}
	}
	if g.waits(w, r, g.callers, caller.ID) {
		return caller, nil, nil
	}
	answered, ok = g.underway.enter(ctx, caller)
	if !ok {
		g.tooMany(w, r, &rates.Error{Of: "requests at a time"})
		return caller, nil, nil
	}
	return caller, func() error {
		return readTokens(ctx, func() error { _, err := s.options.Tokens.Check(ctx, text); return err })
	}, answered
}

// waits answers a request whose caller or address has to wait before the next. It counts those of clients that have
// disconnected, too.
func (g *gate) waits(w http.ResponseWriter, r *http.Request, limiter *rates.Limiter[string], key string) bool {
	slow, waits := errors.AsType[*rates.Error](limiter.Take(context.WithoutCancel(r.Context()), key, 0))
	if waits {
		g.tooMany(w, r, slow)
	}
	return waits
}

// requiresToken reports whether callers must show a token now.
func (s *Server) requiresToken(ctx context.Context) (bool, error) {
	if !s.options.isOpen() {
		return true, nil
	}
	if s.options.Tokens == nil {
		return false, nil
	}
	exist := false
	err := readTokens(ctx, func() (err error) { exist, err = s.options.Tokens.Exist(ctx); return err })
	if exist {
		s.closing.Do(func() {
			s.log.Warn(
				"requests need a token from now on, since one was created; start the server again to apply the limits that keep " +
					"tenants apart")
		})
	}
	return exist, err
}

// readTokens reads tokens for the request of a context, and says of errors whether they are about a token.
func readTokens(ctx context.Context, read func() error) error {
	return standing.OfRead(withDescriptors(ctx, read))
}

// checkOpen returns why a caller without a token may no longer act, or nil.
func (s *Server) checkOpen(ctx context.Context) error {
	required, err := s.requiresToken(ctx)
	if required {
		return standing.ErrRequired
	}
	return err
}

// bearer returns the token that a request shows. If it has several headers, others may read another one, so that none
// counts.
func bearer(r *http.Request) (text string, ok bool) {
	given := r.Header.Values("Authorization")
	if len(given) != 1 {
		return "", false
	}
	scheme, text, _ := strings.Cut(given[0], " ")
	return strings.Clone(strings.TrimSpace(text)), strings.EqualFold(scheme, "Bearer") // the field may be long
}

func (g *gate) tooMany(w http.ResponseWriter, r *http.Request, slow *rates.Error) {
	w.Header().Set("Retry-After", fmt.Sprint(int(slow.After/time.Second)+1))
	g.server.refuse(w, r, problem.Problem{Status: http.StatusTooManyRequests,
		Detail: "too many " + slow.Of + "; try again after the seconds in Retry-After"}, "rate of "+slow.Of)
}

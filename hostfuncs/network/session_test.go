package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/journal"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

func TestSendAndReceive(t *testing.T) {
	for _, kind := range []protocol{plain, secure} {
		t.Run(string(kind), func(t *testing.T) {
			release := make(chan struct{})
			s := serve(t, kind, func(w http.ResponseWriter, r *http.Request) {
				<-release
				io.WriteString(w, r.URL.Query().Get("n"))
			})
			session := granted(t, s, Limits{})
			ids := map[int]string{}
			for i := range maxInFlight {
				id := must(session.Send(t.Context(), Request{URL: s.at("127.0.0.1", fmt.Sprintf("/?n=%d", i))}))
				ids[id] = fmt.Sprint(i)
			}
			require.Len(t, ids, maxInFlight)
			_, err := session.Send(t.Context(), Request{URL: s.at("127.0.0.1", "/")})
			var failed *hostfuncs.Error
			require.ErrorAs(t, err, &failed)
			assert.Equal(t, "http_in_flight", failed.Limit)
			for _, call := range session.Journal.HostCalls() {
				assert.Equal(t, "unfinished", call.Status)
			}
			for id := range ids {
				short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				_, err := session.Receive(short, id)
				cancel()
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			close(release)
			for id, want := range ids {
				assert.Equal(t, want, string(must(session.Receive(t.Context(), id)).Body))
				require.ErrorIs(t, errOf(session.Receive(t.Context(), id)), hostfuncs.ErrInvalid, "each can be received once")
			}
			assert.EqualValues(t, maxInFlight, session.Journal.Count())
		})
	}
}

func TestSendReportsAtOnce(t *testing.T) {
	s := serve(t, plain, http.NotFound)
	session := granted(t, s, Limits{Calls: 4, Bytes: 10})
	for kind, request := range map[error]Request{
		hostfuncs.ErrInvalid: {URL: "nonsense"},
		hostfuncs.ErrDenied:  {URL: "https://example.com/"},
		hostfuncs.ErrLimit:   {Method: "POST", URL: s.at("127.0.0.1", "/"), Body: make([]byte, 11)},
	} {
		require.ErrorIs(t, errOf(session.Send(t.Context(), request)), kind)
	}
	assert.Zero(t, s.connections.Load())
	for range 2 * maxInFlight {
		_, err := session.Send(t.Context(), Request{URL: "nonsense"})
		require.Error(t, err, "what failed does not take a place")
		require.False(t, strings.Contains(err.Error(), "not received"))
	}
}

// TestCheck: what Check refuses is what Do would refuse, with the same error and in the same journal. Other requests
// leave no trace there.
func TestCheck(t *testing.T) {
	s := serve(t, plain, func(http.ResponseWriter, *http.Request) {})
	permission := s.permission("127.0.0.1", "POST")
	limits := Limits{Calls: 3, Bytes: 10}
	options := Options{
		Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grantOf(permission)},
		Secrets: secretFor(t, s, "127.0.0.1", manifests.SecretPlace{Header: "X-Api-Key"}),
	}
	allowed := Request{Method: "POST", URL: s.at("127.0.0.1", "/"), Body: make([]byte, 10)}
	with := func(request Request, header string) Request {
		request.Headers = [][2]string{{header, "x"}}
		return request
	}
	var many []Request
	for range limits.Calls {
		many = append(many, Request{Method: "POST", URL: "nonsense"})
	}
	for name, c := range map[string]struct {
		before  []Request
		request Request
		kind    error
	}{
		"an invalid URL":    {request: Request{URL: "nonsense", Body: allowed.Body}, kind: hostfuncs.ErrInvalid},
		"an invalid header": {request: with(allowed, "Host"), kind: hostfuncs.ErrInvalid},
		"another host": {
			request: Request{Method: "POST", URL: "https://example.com/", Body: allowed.Body}, kind: hostfuncs.ErrDenied,
		},
		"another method":   {request: Request{Method: "PUT", URL: allowed.URL, Body: allowed.Body}, kind: hostfuncs.ErrDenied},
		"a secret's place": {request: with(allowed, "x_api-key"), kind: hostfuncs.ErrDenied},
		"a long body": {
			request: Request{Method: "POST", URL: allowed.URL, Body: make([]byte, 11)}, kind: hostfuncs.ErrLimit,
		},
		"few bytes left": {
			before:  []Request{{Method: "POST", URL: allowed.URL, Body: make([]byte, 1)}},
			request: allowed, kind: hostfuncs.ErrLimit,
		},
		"no requests left":   {before: many, request: allowed, kind: hostfuncs.ErrLimit},
		"an allowed request": {request: allowed},
	} {
		t.Run(name, func(t *testing.T) {
			checked, done := openWith(t, options, limits), openWith(t, options, limits)
			for _, request := range c.before {
				_, _ = checked.Do(t.Context(), request)
				_, _ = done.Do(t.Context(), request)
			}
			before := checked.Journal.HostCalls()
			bare := c.request
			bare.Body = nil
			err := checked.Check(t.Context(), bare, len(c.request.Body))
			if c.kind == nil {
				require.NoError(t, err)
				assert.Equal(t, before, checked.Journal.HostCalls())
				assert.Zero(t, checked.take(1), "responses do not get what the body will take")
				require.NoError(t, checked.Check(t.Context(), bare, 5))
				require.NoError(t, errOf(checked.Do(t.Context(), c.request)), "the next request gets them")
				return
			}
			require.ErrorIs(t, err, c.kind)
			assert.Equal(t, errOf(done.Do(t.Context(), c.request)), err)
			assert.Equal(t, done.Journal.Count(), checked.Journal.Count())
			assert.Equal(t, done.Journal.Denials(), checked.Journal.Denials())
			for i, call := range done.Journal.HostCalls() {
				call.Began, call.Duration = checked.Journal.HostCalls()[i].Began, checked.Journal.HostCalls()[i].Duration
				assert.Equal(t, call, checked.Journal.HostCalls()[i])
			}
		})
	}
}

// TestClose: closing a session ends all its requests.
func TestClose(t *testing.T) {
	for name, closing := range map[string]func(*Session){
		"session": (*Session).Close,
		"client":  func(s *Session) { _ = s.client.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			arrived := make(chan struct{}, 3)
			s := serve(t, plain, func(_ http.ResponseWriter, r *http.Request) {
				arrived <- struct{}{}
				<-r.Context().Done()
			})
			session := granted(t, s, Limits{})
			var ids []int
			for range 2 {
				id := must(session.Send(t.Context(), Request{URL: s.at("127.0.0.1", "/"), Timeout: time.Hour}))
				ids = append(ids, id)
			}
			waiting := make(chan error)
			go func() {
				_, err := session.Do(t.Context(), Request{URL: s.at("127.0.0.1", "/"), Timeout: time.Hour})
				waiting <- err
			}()
			for range 3 {
				<-arrived
			}
			started := time.Now()
			done := make(chan struct{})
			go func() { closing(session); close(done) }()
			require.ErrorIs(t, <-waiting, hostfuncs.ErrUnavailable)
			<-done
			assert.Less(t, time.Since(started), 5*time.Second)
			for _, id := range ids {
				_, err := session.Receive(t.Context(), id)
				require.ErrorIs(t, err, hostfuncs.ErrUnavailable)
				require.ErrorIs(t, err, context.Canceled)
			}
			require.ErrorIs(t, errOf(session.Do(t.Context(), Request{URL: s.at("127.0.0.1", "/")})), hostfuncs.ErrUnavailable)
			closing(session)
		})
	}
}

// TestClientBusy: the calls of one tool together have a bound as well.
func TestClientBusy(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, plain, func(_ http.ResponseWriter, r *http.Request) { <-release })
	first := granted(t, s, Limits{})
	sessions := []*Session{first}
	var busy error
	for range maxClientInFlight + 1 {
		session := sessions[len(sessions)-1]
		_, err := session.Send(t.Context(), Request{URL: s.at("127.0.0.1", "/")})
		if err != nil && strings.Contains(err.Error(), "not received") {
			session = first.client.Open(Limits{})
			defer session.Close()
			sessions = append(sessions, session)
			_, err = session.Send(t.Context(), Request{URL: s.at("127.0.0.1", "/")})
		}
		busy = err
	}
	close(release)
	var failed *hostfuncs.Error
	require.ErrorAs(t, busy, &failed)
	assert.Equal(t, "http_in_flight", failed.Limit)
	assert.EqualValues(t, maxClientInFlight, failed.Value)
}

// TestSharedByteLimit: requests at the same time do not get more bytes together than one.
func TestSharedByteLimit(t *testing.T) {
	s := serve(t, plain, func(w http.ResponseWriter, _ *http.Request) { endless(w, 1<<20) })
	session := granted(t, s, Limits{Bytes: 1 << 20})
	var wait sync.WaitGroup
	var mu sync.Mutex
	received := 0
	for range 8 {
		wait.Go(func() {
			answer, err := session.Do(t.Context(), Request{URL: s.at("127.0.0.1", "/")})
			mu.Lock()
			defer mu.Unlock()
			assert.NoError(t, err)
			received += len(answer.Body)
		})
	}
	wait.Wait()
	assert.Equal(t, 1<<20, received)
}

func TestHostCallsAreCapped(t *testing.T) {
	session := open(t, Options{Tool: "fetch"})
	for i := range tool.MaxHostCalls + 10 {
		require.ErrorIs(t, errOf(session.Do(t.Context(), Request{URL: fmt.Sprintf("https://host%d.example.com/", i)})), hostfuncs.ErrDenied)
	}
	assert.Len(t, session.Journal.HostCalls(), tool.MaxHostCalls)
	assert.EqualValues(t, tool.MaxHostCalls+10, session.Journal.Count())
	denials := session.Journal.Denials()
	require.Len(t, denials, journal.MaxDenials)
	assert.Equal(t, "https://host0.example.com/", denials[0].Value)
	assert.Equal(t, fmt.Sprintf("https://host%d.example.com/", tool.MaxHostCalls+9), denials[journal.MaxDenials-1].Value)
}

func TestHostCallTargetsAreSafe(t *testing.T) {
	session := open(t, Options{Tool: "fetch"})
	for target, want := range map[string]string{
		"https://example.com/a?token=1#part": "GET https://example.com/a",
		"https://user:pass@example.com/":     "an invalid request",
		"https://example.com/\x1b[31m":       "an invalid request",
		"https://example.com/%1b%e2%80%ae":   "GET https://example.com/%1b%e2%80%ae",
		"https://example.com/ü":              "GET https://example.com/%C3%BC",
	} {
		require.Error(t, errOf(session.Do(t.Context(), Request{URL: target})))
		calls := session.Journal.HostCalls()
		assert.Equal(t, want, calls[len(calls)-1].Target)
		assert.False(t, calls[len(calls)-1].Allowed)
	}
}

// TestLog: causes with addresses are for the operator.
func TestLog(t *testing.T) {
	var text strings.Builder
	logger := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
	gone := serve(t, plain, http.NotFound)
	gone.Close()
	permission := gone.permission("inside.example.com")
	resolver := newNames(t, map[string][]string{"inside.example.com": {"127.0.0.1"}}).resolver()
	for _, addresses := range []string{"10.0.0.0/8", "127.0.0.0/8"} {
		s := open(t, Options{
			Tool: "fetch", Requests: []manifests.NetworkPermission{permission}, Resolver: resolver, Logger: logger,
			Grants: []manifests.NetworkGrant{grantOf(permission, addresses)},
		})
		_, err := get(t, s, gone.at("inside.example.com", "/?secret=1"))
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "127.0.0.1")
	}
	assert.Contains(t, text.String(), `level=WARN msg="no address may be connected to" tool=fetch`)
	assert.Contains(t, text.String(), "connection refused")
	assert.Equal(t, 2, strings.Count(text.String(), "127.0.0.1"))
	assert.NotContains(t, text.String(), "secret=1")
}

// TestErrorKinds: every failure matches one kind.
func TestErrorKinds(t *testing.T) {
	kinds := []error{hostfuncs.ErrDenied, hostfuncs.ErrInvalid, hostfuncs.ErrLimit, hostfuncs.ErrDeadline, hostfuncs.ErrIO, hostfuncs.ErrUnavailable}
	words := map[string]bool{}
	for _, kind := range kinds {
		failed := &hostfuncs.Error{Op: "request", Kind: kind, Message: "m", Cause: errors.New("10.0.0.1")}
		matches := 0
		for _, other := range kinds {
			if errors.Is(failed, other) {
				matches++
			}
		}
		assert.Equal(t, 1, matches)
		assert.NotContains(t, failed.Error(), "10.0.0.1")
		words[statusOf(failed)] = true
	}
	assert.Len(t, words, len(kinds))
}

func TestNewRefuses(t *testing.T) {
	valid := manifests.NetworkPermission{Host: "example.com"}
	for name, options := range map[string]Options{
		"host":        {Requests: []manifests.NetworkPermission{{Host: "exa mple"}}},
		"scheme":      {Requests: []manifests.NetworkPermission{{Host: "example.com", Schemes: []string{"ftp"}}}},
		"port":        {Requests: []manifests.NetworkPermission{{Host: "example.com", Ports: []int{0}}}},
		"many ports":  {Requests: []manifests.NetworkPermission{{Host: "example.com", Ports: []int{443, manifests.EveryPort}}}},
		"every port":  {Grants: []manifests.NetworkGrant{{NetworkPermission: manifests.NetworkPermission{Host: "example.com", Ports: []int{manifests.EveryPort}}}}},
		"path":        {Requests: []manifests.NetworkPermission{{Host: "example.com", Paths: []string{"v1"}}}},
		"grant":       {Grants: []manifests.NetworkGrant{{NetworkPermission: manifests.NetworkPermission{Host: "*.*"}}}},
		"connect":     {Grants: []manifests.NetworkGrant{{NetworkPermission: valid, Connect: "example.com:80"}}},
		"authorities": {Grants: []manifests.NetworkGrant{{NetworkPermission: valid, Authorities: t.TempDir() + "/none.pem"}}},
		"no file":     {Grants: []manifests.NetworkGrant{{NetworkPermission: valid, Authorities: t.TempDir()}}},
		"no PEM":      {Grants: []manifests.NetworkGrant{{NetworkPermission: valid, Authorities: "session_test.go"}}},
		"denial":      {Deny: []manifests.Deny{{Origin: "policy.yaml:3", Network: &manifests.NetworkDeny{Host: "127.1"}}}},
		"denied path": {Deny: []manifests.Deny{{Origin: "policy.yaml:3", Network: &manifests.NetworkDeny{Paths: []string{"/a/../b"}}}}},
	} {
		_, err := New(options)
		var failed *hostfuncs.Error
		require.ErrorAs(t, err, &failed, name)
		assert.Equal(t, "new", failed.Op)
	}
}

// TestBodiesUnderWayAreBounded: a session does not make the host hold more bodies than it may
// send, and a request that is refused costs nothing.
func TestBodiesUnderWayAreBounded(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, plain, func(_ http.ResponseWriter, r *http.Request) { <-release })
	permission := s.permission("127.0.0.1", http.MethodPost)
	session := openWith(t, Options{Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grantOf(permission)}}, Limits{Bytes: 1 << 20})
	request := Request{Method: http.MethodPost, URL: s.at("127.0.0.1", "/"), Body: make([]byte, 1<<20)}
	require.ErrorIs(t, errOf(session.Do(t.Context(), Request{Method: http.MethodPut, URL: request.URL, Body: request.Body})), hostfuncs.ErrDenied)
	id := must(session.Send(t.Context(), request))
	_, err := session.Send(t.Context(), request)
	close(release)
	var failed *hostfuncs.Error
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "http_bytes", failed.Limit)
	<-session.sent[id].done
	assert.Nil(t, session.sent[id].hop.body, "the body is not kept until the answer is received")
	require.NoError(t, errOf(session.Receive(t.Context(), id)))
}

// TestHostCallsSayWhenTheyBegan: the record of a call is in the order of time.
func TestHostCallsSayWhenTheyBegan(t *testing.T) {
	session := open(t, Options{Tool: "fetch"})
	before := time.Now()
	for _, target := range []string{"https://example.com/", "no URL"} {
		require.Error(t, errOf(session.Do(t.Context(), Request{URL: target})))
	}
	for _, call := range session.Journal.HostCalls() {
		assert.False(t, call.Began.Before(before))
		before = call.Began
	}
}

// TestCheckThatIsNotUsed: what a check keeps for a body is there again for what comes after it, also if that is refused.
func TestCheckThatIsNotUsed(t *testing.T) {
	s := serve(t, plain, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 10)) })
	permission := s.permission("127.0.0.1", "POST")
	session := openWith(t, Options{
		Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grantOf(permission)},
	}, Limits{Calls: 9, Bytes: 10})
	request := Request{Method: "POST", URL: s.at("127.0.0.1", "/")}
	require.NoError(t, session.Check(t.Context(), request, 10))
	require.Error(t, session.Check(t.Context(), Request{URL: "nonsense"}, 1))
	response, err := session.Do(t.Context(), request)
	require.NoError(t, err)
	assert.Len(t, response.Body, 10)
	assert.False(t, response.Truncated)

	require.Error(t, session.Check(t.Context(), request, 10), "the control: no byte is left")
}

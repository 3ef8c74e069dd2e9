package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/internal/sampling"
	"github.com/caisson-run/caisson/internal/tooltest"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/internal/problem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running is a server that a test uses.
type running struct {
	url, address string
	log          *tooltest.Log
	stop         context.CancelFunc
	stopped      chan error
	client       *http.Client
}

// echo answers with the caller and the body.
func echo(w http.ResponseWriter, r *http.Request) {
	c, _ := auth.From(r.Context())
	body, err := io.ReadAll(r.Body)
	if err != nil {
		problem.Write(w, problem.Problem{Status: http.StatusRequestEntityTooLarge})
		return
	}
	fmt.Fprintf(w, "%s|%s|%v|%s", c.Tenant, c.User, c.Scopes, body)
}

func start(t testing.TB, options Options, doors ...Endpoint) *running {
	t.Helper()
	if len(doors) == 0 {
		doors = []Endpoint{{Pattern: "/echo", Handler: http.HandlerFunc(echo)}}
	}
	r := &running{log: &tooltest.Log{}, stopped: make(chan error, 1)}
	options.Logger = slog.New(slog.NewTextHandler(r.log, nil))
	if options.Addr == "" {
		options.Addr = "127.0.0.1:0"
	}
	s, err := New(options, doors...)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	listening := make(chan net.Addr, 1)
	go func() { r.stopped <- s.Serve(ctx, func(a net.Addr) { listening <- a }) }()
	select {
	case a := <-listening:
		r.address = a.String()
	case err := <-r.stopped:
		require.NoError(t, err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	r.url, r.client = "http://"+r.address, &http.Client{Transport: transport}
	if options.TLS != nil {
		r.url = "https://" + r.address
	}
	t.Cleanup(func() {
		stop()
		transport.CloseIdleConnections()
		select {
		case err := <-r.stopped:
			assert.NoError(t, err)
		case <-time.After(time.Minute):
			t.Error("the server does not stop")
		}
		r.stopped <- nil
	})
	return r
}

// answer is what a server said.
type answer struct {
	status int
	header http.Header
	body   string
}

func (r *running) do(t testing.TB, method, path, body string, header ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			request.Host = header[i+1]
			continue
		}
		request.Header.Set(header[i], header[i+1])
	}
	response, err := r.client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	if response.StatusCode >= 400 && path != "/readyz" {
		assert.Equal(t, problem.ContentType, response.Header.Get("Content-Type"), string(text))
		var p problem.Problem
		require.NoError(t, json.Unmarshal(text, &p))
		assert.Equal(t, response.StatusCode, p.Status)
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

// stateFolder returns the path of a state folder, which is made with the first token.
func stateFolder(t testing.TB) string { return filepath.Join(t.TempDir(), "state") }

// tokens opens tokens in a new state folder.
func tokens(t testing.TB) *auth.Tokens {
	t.Helper()
	return tokensIn(t, stateFolder(t))
}

// tokensIn opens the tokens in a state folder until the end of the test, as another process does.
func tokensIn(t testing.TB, state string) *auth.Tokens {
	t.Helper()
	of, err := auth.Open(t.Context(), state, "")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, of.Close()) })
	return of
}

func issued(t testing.TB, of *auth.Tokens, token auth.Token) (text, id string) {
	t.Helper()
	text, made, err := of.Create(t.Context(), token)
	require.NoError(t, err)
	return text, made.ID
}

func TestEverybodyOnThisMachine(t *testing.T) {
	r := start(t, Options{Local: auth.Caller{User: "me"}})
	a := r.do(t, "POST", "/echo", "hello")
	assert.Equal(t, "|me|[read call approve admin]|hello", a.body)
	assert.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
	assert.Equal(t, "no-store", a.header.Get("Cache-Control"))
	assert.Equal(t, "ok\n", r.do(t, "GET", "/healthz", "").body)
	assert.Equal(t, "ready\n", r.do(t, "GET", "/readyz", "").body)
	assert.Equal(t, http.StatusNotFound, r.do(t, "GET", "/nothing", "").status)
	assert.Equal(t, http.StatusNotFound, r.do(t, "GET", "/metrics", "").status)
}

// TestAttackOpenServer: without tokens, no other machine gets in, whichever way the address is written.
func TestAttackOpenServer(t *testing.T) {
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "example.com:80", "192.0.2.1:0"} {
		_, err := New(Options{Addr: addr})
		require.ErrorIs(t, err, ErrOpen, addr)
		_, err = New(Options{Addr: addr, Tokens: tokens(t)}) // the control
		require.NoError(t, err)
	}
	for _, addr := range []string{"localhost:0", "127.0.0.1:0", "[::1]:0", "127.1.2.3:0"} {
		_, err := New(Options{Addr: addr})
		require.NoError(t, err, addr)
	}
}

// TestAttackTokens: only a token that works lets a request in, and only for its own caller.
func TestAttackTokens(t *testing.T) {
	known := tokens(t)
	acme, id := issued(t, known, auth.Token{Tenant: "acme", User: "ada", Scopes: []auth.Scope{auth.Read}})
	other, _ := issued(t, known, auth.Token{Tenant: "other", Scopes: []auth.Scope{auth.Call}})
	r := start(t, Options{Tokens: known, Local: auth.Caller{Tenant: "nobody's"}, Limits: Limits{Failures: 1e6}})
	for name, header := range map[string][]string{
		"none": nil, "empty": {"Authorization", ""}, "basic": {"Authorization", "Basic " + acme}, "no token": {"Authorization", "Bearer"},
		"half": {"Authorization", "Bearer " + acme[:30]}, "another's secret": {"Authorization", "Bearer " + acme[:22] + other[22:]},
		"in another header": {"X-Token", acme}, "a cookie": {"Cookie", "token=" + acme},
	} {
		a := r.do(t, "GET", "/echo", "", header...)
		assert.Equal(t, http.StatusUnauthorized, a.status, name)
		assert.Contains(t, a.header.Get("WWW-Authenticate"), "Bearer", name)
		assert.NotContains(t, a.body, "acme", name)
		assert.Equal(t, http.StatusUnauthorized, r.do(t, "GET", "/nothing", "", header...).status, "what there is is not told")
	}
	assert.Equal(t, http.StatusUnauthorized, r.do(t, "GET", "/echo?access_token="+acme, "").status, "an address is logged")
	assert.Equal(t, "acme|ada|[read]|", r.do(t, "GET", "/echo", "", "Authorization", "bearer "+acme).body, "the control")
	assert.Equal(t, "other||[call]|", r.do(t, "GET", "/echo", "", "Authorization", "Bearer "+other).body)
	assert.Equal(t, http.StatusOK, r.do(t, "GET", "/healthz", "").status)
	_, err := known.Revoke(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, http.StatusUnauthorized, r.do(t, "GET", "/echo", "", "Authorization", "Bearer "+acme).status)
	log := r.log.String()
	assert.Contains(t, log, `msg="request refused" why="no token"`)
	assert.Contains(t, log, "why=\"the token was revoked\"")
	assert.NotContains(t, log, acme[len(acme)-52:], "the log has no secrets")
}

// TestAttackRebinding: a page whose own name points here reaches nothing, nor does a page of another origin. The
// control is the same request under a name that the operator allows.
func TestAttackRebinding(t *testing.T) {
	r := start(t, Options{Hosts: []string{"tools.example.com"}, Origins: []string{"https://app.example.com"}})
	_, port, _ := net.SplitHostPort(r.address)
	for _, test := range []struct {
		name   string
		header []string
		status int
	}{
		{"this address", nil, 200}, {"localhost", []string{"Host", "localhost:" + port}, 200}, {"localhost in capitals", []string{"Host", "LOCALHOST."}, 200},
		{"another address", []string{"Host", "[::1]:" + port}, 200}, {"an allowed name", []string{"Host", "Tools.Example.com"}, 200},
		{"another name", []string{"Host", "evil.example"}, 403}, {"another name and this port", []string{"Host", "evil.example:" + port}, 403},
		{"a name that begins so", []string{"Host", "localhost.evil.example"}, 403}, {"a name below", []string{"Host", "a.tools.example.com"}, 403}, {"an address in a name", []string{"Host", "127.0.0.1.nip.example"}, 403},
		{"an allowed origin", []string{"Origin", "https://app.example.com"}, 200}, {"a page of the server", []string{"Origin", r.url}, 200},
		{"another origin", []string{"Origin", "https://evil.example"}, 403}, {"no origin", []string{"Origin", "null"}, 403},
		{"an origin that begins so", []string{"Origin", "https://app.example.com.evil.example"}, 403}, {"an allowed origin over HTTP", []string{"Origin", "http://app.example.com"}, 403},
		{"another port of this machine", []string{"Origin", "http://127.0.0.1:1"}, 403}, {"a page of the rebound name", []string{"Host", "evil.example", "Origin", "http://evil.example"}, 403},
		{"an image on another site", []string{"Sec-Fetch-Site", "cross-site"}, 403}, {"typed by the user", []string{"Sec-Fetch-Site", "none"}, 200},
	} {
		for _, path := range []string{"/echo", "/healthz"} {
			a := r.do(t, "GET", path, "", test.header...)
			assert.Equal(t, test.status, a.status, "%s of %s", path, test.name)
			if test.status == 403 {
				assert.Empty(t, a.header.Get("Access-Control-Allow-Origin"), test.name)
			}
		}
	}
	preflight := []string{"Origin", "https://app.example.com", "Access-Control-Request-Method", "POST"}
	a := r.do(t, "OPTIONS", "/echo", "", preflight...)
	assert.Equal(t, http.StatusNoContent, a.status)
	assert.Equal(t, "https://app.example.com", a.header.Get("Access-Control-Allow-Origin"))
	assert.Empty(t, a.header.Get("Access-Control-Allow-Credentials"))
	preflight[1] = "https://evil.example"
	assert.Equal(t, http.StatusForbidden, r.do(t, "OPTIONS", "/echo", "", preflight...).status)
}

// TestAttackLimits: each limit stops requests beyond it. The control is a request within it.
func TestAttackLimits(t *testing.T) {
	t.Parallel() // it waits for most of its time
	t.Run("body", func(t *testing.T) {
		r := start(t, Options{Limits: Limits{BodyBytes: 10}})
		assert.Equal(t, http.StatusRequestEntityTooLarge, r.do(t, "POST", "/echo", "12345678901").status)
		assert.Equal(t, http.StatusOK, r.do(t, "POST", "/echo", "1234567890").status)
		// Without a length that is said.
		response, err := r.client.Post(r.url+"/echo", "text/plain", io.LimitReader(endless{}, 1<<20))
		require.NoError(t, err)
		response.Body.Close()
		assert.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)
	})
	t.Run("header", func(t *testing.T) {
		r := start(t, Options{Limits: Limits{HeaderBytes: 4096}})
		request, err := http.NewRequestWithContext(t.Context(), "GET", r.url+"/echo", nil)
		require.NoError(t, err)
		request.Header.Set("X-Long", strings.Repeat("a", 16<<10))
		response, err := r.client.Do(request)
		require.NoError(t, err)
		response.Body.Close()
		assert.Equal(t, http.StatusRequestHeaderFieldsTooLarge, response.StatusCode)
		assert.Equal(t, http.StatusOK, r.do(t, "GET", "/echo", "", "X-Short", strings.Repeat("a", 1024)).status)
	})
	t.Run("rate", func(t *testing.T) {
		known := tokens(t)
		one, _ := issued(t, known, auth.Token{Scopes: []auth.Scope{auth.Read}})
		two, _ := issued(t, known, auth.Token{Scopes: []auth.Scope{auth.Read}})
		r := start(t, Options{Tokens: known, Limits: Limits{Rate: 0.001, Burst: 2}})
		var statuses []int
		for range 3 {
			a := r.do(t, "GET", "/echo", "", "Authorization", "Bearer "+one)
			statuses = append(statuses, a.status)
			if a.status == http.StatusTooManyRequests {
				assert.NotEmpty(t, a.header.Get("Retry-After"))
			}
		}
		assert.Equal(t, []int{200, 200, 429}, statuses)
		assert.Equal(t, http.StatusOK, r.do(t, "GET", "/echo", "", "Authorization", "Bearer "+two).status, "others are not slowed down")
	})
	t.Run("failures", func(t *testing.T) {
		known := tokens(t)
		good, _ := issued(t, known, auth.Token{Scopes: []auth.Scope{auth.Read}})
		r := start(t, Options{Tokens: known, Limits: Limits{Failures: 0.001}})
		for i := range failureBurst + 1 {
			want := http.StatusUnauthorized
			if i == failureBurst {
				want = http.StatusTooManyRequests
			}
			assert.Equal(t, want, r.do(t, "GET", "/echo", "", "Authorization", "Bearer caisson_no").status, i)
		}
		assert.Equal(t, http.StatusOK, r.do(t, "GET", "/echo", "", "Authorization", "Bearer "+good).status, "others at the address, such as a proxy's, are not kept out")
		assert.Equal(t, http.StatusTooManyRequests, r.do(t, "GET", "/echo", "", "Authorization", "Bearer caisson_no").status)
	})
	t.Run("connections", func(t *testing.T) {
		entered, leave := make(chan struct{}), make(chan struct{})
		busy := Endpoint{Pattern: "/busy", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			entered <- struct{}{}
			<-leave
		})}
		r := start(t, Options{Limits: Limits{Connections: 2}}, busy)
		for range 2 {
			send(t, dial(t, r), "GET /busy HTTP/1.1\r\nHost: localhost\r\n\r\n")
			<-entered
		}
		third := dial(t, r)
		send(t, third, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, third.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
		_, err := third.Read(make([]byte, 1))
		require.Error(t, err, "the third waits")
		leave <- struct{}{}
		require.NoError(t, third.SetReadDeadline(time.Now().Add(time.Minute)))
		assert.Contains(t, firstLine(t, third), "200")
		leave <- struct{}{}
	})
	for name, sent := range map[string]string{"new": "", "slow header": "GET /healthz HTTP/1.1\r\nHost: local", "idle": "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"} {
		t.Run("connections that wait, "+name, func(t *testing.T) { // they block no other client
			r := start(t, Options{Limits: Limits{Connections: 2}})
			first := dial(t, r)
			send(t, first, sent)
			if name == "idle" {
				assert.Contains(t, firstLine(t, first), "200")
			}
			assert.Eventually(t, func() bool { // the one that waited for longest makes room, once net/http says that it waits
				c := dial(t, r)
				send(t, c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
				require.NoError(t, c.SetReadDeadline(time.Now().Add(5*time.Second)))
				assert.Contains(t, firstLine(t, c), "200")
				require.NoError(t, first.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
				_, err := io.ReadAll(first)
				return !errors.Is(err, os.ErrDeadlineExceeded)
			}, 5*time.Second, 10*time.Millisecond)
		})
	}
	t.Run("slow header", func(t *testing.T) {
		r := start(t, Options{Limits: Limits{Header: 200 * time.Millisecond}})
		c := dial(t, r)
		send(t, c, "GET /healthz HTTP/1.1\r\nHost: local")
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err := io.ReadAll(c)
		require.NoError(t, err, "the server closes the connection")
	})
	t.Run("slow body", func(t *testing.T) {
		r := start(t, Options{Limits: Limits{Body: 200 * time.Millisecond}})
		c := dial(t, r)
		send(t, c, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n1")
		assert.Contains(t, firstLine(t, c), "413", "echo's answer to a body that it cannot read")
	})
	t.Run("body that nobody reads", func(t *testing.T) { // net/http waits for the rest of it
		known := tokens(t)
		good, _ := issued(t, known, auth.Token{Scopes: []auth.Scope{auth.Read}})
		deaf := Endpoint{Pattern: "/deaf", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })}
		for name, header := range map[string]string{
			"no token":      "POST /deaf HTTP/1.1\r\nHost: localhost",
			"wrong token":   "POST /deaf HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x",
			"another host":  "POST /deaf HTTP/1.1\r\nHost: evil.example",
			"another page":  "POST /deaf HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example",
			"no path":       "POST /none HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + good,
			"open to all":   "GET /healthz HTTP/1.1\r\nHost: localhost",
			"refused later": "POST /deaf HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + good,
		} {
			for kind, length := range map[string]string{"": "Content-Length: 100\r\n\r\n", ", chunked": "Transfer-Encoding: chunked\r\n\r\n64\r\n"} {
				t.Run(name+kind, func(t *testing.T) {
					t.Parallel()
					r := start(t, Options{Tokens: known, Limits: Limits{Body: 500 * time.Millisecond}}, deaf)
					c := dial(t, r)
					send(t, c, header+"\r\n"+length+"1")
					require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
					answer, err := io.ReadAll(c)
					require.NoError(t, err, "the server ends the connection")
					assert.Regexp(t, `^HTTP/1.1 (200|401|403|404) `, string(answer))
				})
			}
		}
	})
	t.Run("slow reader", func(t *testing.T) {
		ended := make(chan error, 1)
		flood := Endpoint{Pattern: "/flood", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			page := make([]byte, 1<<20)
			for {
				if _, err := w.Write(page); err != nil {
					ended <- err
					return
				}
			}
		})}
		r := start(t, Options{Limits: Limits{Stall: 200 * time.Millisecond}}, flood)
		send(t, dial(t, r), "GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n")
		select {
		case err := <-ended:
			require.Error(t, err)
		case <-time.After(time.Minute):
			t.Fatal("the handler is still writing")
		}
	})
	t.Run("a long answer to a short body", func(t *testing.T) { // the time for the body does not bound the rest
		slow := Endpoint{Pattern: "/slow", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			select {
			case <-time.After(500 * time.Millisecond):
				io.WriteString(w, "done")
			case <-r.Context().Done():
			}
		})}
		r := start(t, Options{Limits: Limits{Body: 100 * time.Millisecond, Stall: 100 * time.Millisecond}}, slow)
		assert.Equal(t, "done", r.do(t, "POST", "/slow", "x").body)
	})
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func dial(t *testing.T, r *running) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", r.address)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
}

func firstLine(t *testing.T, c net.Conn) string {
	t.Helper()
	line, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(t, err)
	return line
}

// TestStopping: accepted requests are answered; those that take too long are cancelled, and say so; streams that only
// wait end at once; new requests are refused.
func TestStopping(t *testing.T) {
	t.Parallel() // it waits for most of its time
	draining := make(chan struct{})
	var begun atomic.Int64
	doors := []Endpoint{
		{Pattern: "/call", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun.Add(1)
			d, _ := time.ParseDuration(r.URL.Query().Get("for"))
			select {
			case <-time.After(d):
				io.WriteString(w, "done")
			case <-r.Context().Done():
				io.WriteString(w, "cancelled: "+context.Cause(r.Context()).Error())
			}
		})},
		{Pattern: "/events", Drain: func(context.Context) error { close(draining); return nil }, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun.Add(1)
			<-draining
			io.WriteString(w, "bye")
		})},
	}
	r := start(t, Options{Limits: Limits{Drain: time.Second}}, doors...)
	answers := make(chan string, 16)
	paths := []string{"/call?for=200ms", "/call?for=300ms", "/call?for=10m", "/events", "/events"}
	for _, path := range paths {
		go func() {
			response, err := r.client.Get(r.url + path)
			if err != nil {
				answers <- err.Error()
				return
			}
			defer response.Body.Close()
			body, _ := io.ReadAll(response.Body)
			answers <- string(body)
		}()
	}
	require.Eventually(t, func() bool { return begun.Load() == int64(len(paths)) }, time.Minute, time.Millisecond)
	r.stop()
	var got []string
	for range paths {
		got = append(got, <-answers)
	}
	assert.ElementsMatch(t, []string{"done", "done", "bye", "bye", "cancelled: the server is stopping"}, got)
	_, err := r.client.Get(r.url + "/healthz")
	require.Error(t, err)
}

// TestStoppingWithoutAnEnd: a handler that does not end is left, and the server says so.
func TestStoppingWithoutAnEnd(t *testing.T) {
	t.Parallel() // it waits for most of its time
	release, begun := make(chan struct{}), make(chan struct{})
	r := start(t, Options{Limits: Limits{Drain: time.Millisecond}}, Endpoint{Pattern: "/stuck", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(begun)
		<-release
	})})
	defer close(release)
	go r.client.Get(r.url + "/stuck") //nolint:errcheck // it is cut off
	<-begun
	r.stop()
	require.ErrorIs(t, <-r.stopped, errUnfinished)
	r.stopped <- nil
}

func TestFailuresHaveAnID(t *testing.T) {
	r := start(t, Options{Ready: func(context.Context) error { return fmt.Errorf("the disk at /secret/path is full") }},
		Endpoint{Pattern: "/panic", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("in /secret/path") })})
	a := r.do(t, "GET", "/panic", "")
	assert.Equal(t, http.StatusInternalServerError, a.status)
	assert.NotContains(t, a.body, "secret")
	var p problem.Problem
	require.NoError(t, json.Unmarshal([]byte(a.body), &p))
	require.NotEmpty(t, p.ID)
	assert.Contains(t, r.log.String(), p.ID)
	assert.Contains(t, r.log.String(), "/secret/path")
	a = r.do(t, "GET", "/readyz", "")
	assert.Equal(t, http.StatusServiceUnavailable, a.status)
	assert.NotContains(t, a.body, "secret")
}

// TestAttackFloodedLog: refused requests do not fill the log, and none hides the other kinds. The log says how many are
// not in it.
func TestAttackFloodedLog(t *testing.T) {
	known := tokens(t)
	works, _ := issued(t, known, auth.Token{Scopes: []auth.Scope{auth.Read}})
	revoked, id := issued(t, known, auth.Token{Scopes: []auth.Scope{auth.Read}})
	_, err := known.Revoke(t.Context(), id)
	require.NoError(t, err)
	r := start(t, Options{Tokens: known, Limits: Limits{Failures: 1e6, Requests: 1}})
	const flood = 1000
	for range flood {
		r.do(t, "GET", "/echo", "", "Authorization", "Bearer caisson_no")
	}
	r.do(t, "GET", "/echo", "", "Authorization", "Bearer "+revoked)
	r.do(t, "GET", "/echo", "", "Host", "evil.example")
	assert.Equal(t, http.StatusOK, r.do(t, "GET", "/echo", "", "Authorization", "Bearer "+works).status, "the control")
	log := r.log.String()
	assert.Less(t, strings.Count(log, "request refused"), 2*sampling.Burst)
	assert.Contains(t, log, "why=\"the token was revoked\"")
	assert.Contains(t, log, "token="+id)
	assert.Contains(t, log, "host evil.example")
	r.stop()
	require.NoError(t, <-r.stopped)
	r.stopped <- nil
	log = r.log.String()
	logged, hidden := strings.Count(log, "msg=\"request refused\""), 0
	for _, found := range regexp.MustCompile(`not_logged=(\d+)`).FindAllStringSubmatch(log, -1) {
		n, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		hidden += n
	}
	assert.Equal(t, flood+2, logged+hidden)
}

// TestUnparsedRequests: a request that net/http refuses before any handler sees it gets a problem, as all refused
// requests do.
func TestUnparsedRequests(t *testing.T) {
	r := start(t, Options{Limits: Limits{HeaderBytes: 4096}})
	// net/http reads 4 KiB more. It resets a connection with unread bytes, which may reach the client before the answer
	// is read.
	const long = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: "
	for name, test := range map[string]struct {
		request string
		status  int
	}{
		"long header": {long + strings.Repeat("a", 4096+4096-len(long)), 431},
		"no host":     {"GET /healthz HTTP/1.1\r\n\r\n", 400},
		"not HTTP":    {"HELO localhost\r\n\r\n", 400},
		"transfer":    {"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
		"version":     {"GET /healthz HTTP/3.0\r\nHost: localhost\r\n\r\n", 505},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, r)
			_, _ = io.WriteString(c, test.request) // the server may answer before it has read all
			require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
			response, err := http.ReadResponse(bufio.NewReader(c), nil)
			require.NoError(t, err)
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			assert.Equal(t, test.status, response.StatusCode)
			assert.Equal(t, problem.ContentType, response.Header.Get("Content-Type"), string(body))
			var p problem.Problem
			require.NoError(t, json.Unmarshal(body, &p))
			assert.Equal(t, test.status, p.Status)
			assert.NotEmpty(t, p.Detail)
		})
	}
	const text = "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain; charset=utf-8\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nConnection: close\r\n\r\nx"
	_, changed := asProblem([]byte(text))
	assert.False(t, changed, "a handler's own answer")
}

// TestAttackMetricsOfAll: the sum of all tenants is for the operator, and for no tenant.
func TestAttackMetricsOfAll(t *testing.T) {
	known := tokens(t)
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "calls 1") })
	r := start(t, Options{Tokens: known, Metrics: metrics})
	for name, test := range map[string]struct {
		token  auth.Token
		status int
	}{
		"operator": {auth.Token{Scopes: []auth.Scope{auth.Admin}}, 200}, "a tenant's admin": {auth.Token{Tenant: "acme", Scopes: auth.Scopes()}, 403},
		"a reader": {auth.Token{Scopes: []auth.Scope{auth.Read, auth.Call}}, 403},
	} {
		text, _ := issued(t, known, test.token)
		assert.Equal(t, test.status, r.do(t, "GET", "/metrics", "", "Authorization", "Bearer "+text).status, name)
	}
	assert.Equal(t, http.StatusUnauthorized, r.do(t, "GET", "/metrics", "").status)
}

func TestTLS(t *testing.T) {
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	defer certified.Close()
	r := start(t, Options{TLS: &tls.Config{Certificates: certified.TLS.Certificates}})
	response, err := r.client.Get(r.url + "/echo")
	require.NoError(t, err)
	defer response.Body.Close()
	assert.Equal(t, 200, response.StatusCode)
	assert.Equal(t, 200, r.do(t, "GET", "/echo", "", "Origin", r.url).status)
	assert.Equal(t, 403, r.do(t, "GET", "/echo", "", "Origin", "http://"+r.address).status, "a page that anybody can change")
}

func TestWrongOptions(t *testing.T) {
	for name, options := range map[string]Options{
		"no port": {Addr: "localhost"}, "origin with a path": {Origins: []string{"https://a.example/x"}}, "any origin": {Origins: []string{"*"}},
		"an origin that no browser writes": {Origins: []string{"https://App.example"}}, "the usual port": {Origins: []string{"https://a.example:443"}}, "host with a port": {Hosts: []string{"a.example:80"}},
		"empty host": {Hosts: []string{""}}, "negative": {Limits: Limits{BodyBytes: -1}}, "negative time": {Limits: Limits{Drain: -1}}, "negative rate": {Limits: Limits{Rate: -1}},
	} {
		_, err := New(options)
		require.ErrorIs(t, err, ErrInvalidOptions, name)
	}
	_, err := New(Options{Origins: []string{"https://a.example", "http://localhost:3000", "http://a.example:443"}})
	require.NoError(t, err)
	_, err = New(Options{}, Endpoint{Pattern: "/a"}, Endpoint{Pattern: "/a"})
	require.Error(t, err)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	drained := errors.New("drained")
	s, err := New(Options{Addr: taken.Addr().String()}, Endpoint{Pattern: "/a", Handler: http.HandlerFunc(echo), Drain: func(context.Context) error { return drained }})
	require.NoError(t, err)
	err = s.Serve(t.Context(), nil)
	require.ErrorContains(t, err, "address already in use")
	require.ErrorIs(t, err, drained)
}

func TestHostNames(t *testing.T) {
	for _, name := range []string{"a", "a.b", "tools.example.com", "xn--bcher-kva.example", strings.Repeat("a", 63) + ".example"} {
		_, err := New(Options{Hosts: []string{name}})
		assert.NoError(t, err, name)
	}
	for _, name := range []string{"", ".", "a.", ".a", "a..b", "-a.b", "a-.b", "a b", "a_b", "https://a.b", "a.b/c", strings.Repeat("a", 64) + ".example"} {
		_, err := New(Options{Hosts: []string{name}})
		assert.ErrorIs(t, err, ErrInvalidOptions, name)
	}
}

// TestDrainHasAnEnd: a door is told when its time is over, Serve waits for it, and returns its error.
func TestDrainHasAnEnd(t *testing.T) {
	late := errors.New("something was cancelled")
	r := start(t, Options{Limits: Limits{Drain: 10 * time.Millisecond}}, Endpoint{Pattern: "/a", Handler: http.HandlerFunc(echo), Drain: func(ctx context.Context) error {
		<-ctx.Done()
		time.Sleep(10 * time.Millisecond)
		return late
	}})
	r.stop()
	require.ErrorIs(t, <-r.stopped, late)
	r.stopped <- nil
}

func BenchmarkGate(b *testing.B) {
	known := tokens(b)
	text, _ := issued(b, known, auth.Token{Scopes: []auth.Scope{auth.Call}})
	s, err := New(Options{Tokens: known, Limits: Limits{Rate: 1e12, Burst: 1e9}}, Endpoint{Pattern: "/", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})})
	require.NoError(b, err)
	r := httptest.NewRequest("POST", "/", strings.NewReader("{}"))
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer "+text)
	w := httptest.NewRecorder()
	b.ReportAllocs()
	for b.Loop() {
		s.handler.ServeHTTP(w, r)
	}
}

// TestPathsThatAreNotPlain: a path that net/http would answer with a redirection, and a method that it knows no path
// of, are refused like any other that is not there.
func TestPathsThatAreNotPlain(t *testing.T) {
	echoes := Endpoint{Pattern: "/v1/", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, problem.Problem{Status: http.StatusNotFound, Detail: r.URL.Path})
	})}
	r := start(t, Options{Local: auth.Caller{User: "me"}}, echoes)
	for request, detail := range map[string]string{
		"POST /v1//calls": "there is nothing here", "GET /v1/../v1/tools": "there is nothing here", "GET //healthz": "there is nothing here",
		"CONNECT localhost:80": "there is nothing here", "OPTIONS *": "there is nothing here", "GET /v1": "/v1", "GET /v1/x/": "/v1/x/",
	} {
		t.Run(request, func(t *testing.T) {
			c, err := net.Dial("tcp", r.address)
			require.NoError(t, err)
			defer c.Close()
			send(t, c, request+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
			response, err := http.ReadResponse(bufio.NewReader(c), nil)
			require.NoError(t, err)
			defer response.Body.Close()
			assert.Equal(t, http.StatusNotFound, response.StatusCode)
			assert.Equal(t, problem.ContentType, response.Header.Get("Content-Type"))
			var p problem.Problem
			require.NoError(t, json.NewDecoder(response.Body).Decode(&p))
			assert.Contains(t, p.Detail, detail)
		})
	}
}

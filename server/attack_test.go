package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/caisson-run/caisson/server/auth"
)

// client2 sends frames of HTTP/2.
type client2 struct {
	conn   net.Conn
	framer *http2.Framer
	next   uint32 // stream
}

// dial2 opens a connection that grants each stream a window of so many bytes.
func dial2(t *testing.T, address string, window uint32) *client2 {
	t.Helper()
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = io.WriteString(c, http2.ClientPreface)
	require.NoError(t, err)
	client := &client2{c, http2.NewFramer(c, c), 1}
	require.NoError(t, client.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}))
	return client
}

// ask begins a stream with the header fields, given as names and values, after those of GET https://localhost/path. It
// returns an error once the server has closed the connection.
func (c *client2) ask(path string, end bool, fields ...string) error {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i, fields := 0, append([]string{":method", "GET", ":scheme", "https", ":authority", "localhost", ":path", path}, fields...); i < len(fields); i += 2 {
		if err := encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
			return err
		}
	}
	stream := c.next
	c.next += 2
	first := block.Next(16 << 10)
	if err := c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: first, EndStream: end, EndHeaders: block.Len() == 0}); err != nil {
		return err
	}
	for block.Len() > 0 {
		fragment := block.Next(16 << 10)
		if err := c.framer.WriteContinuation(stream, block.Len() == 0, fragment); err != nil {
			return err
		}
	}
	return nil
}

// attackers are clients without a token that hold a connection. Each returns what it does again and again, until an
// error says that the server has closed the connection.
var attackers = map[string]func(t *testing.T, address string) (again func() error){
	"idle": func(t *testing.T, address string) func() error { return waits(dialTLS(t, address)) },
	"a handshake that stalls": func(t *testing.T, address string) func() error {
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return waits(c)
	},
	"half of a header": func(t *testing.T, address string) func() error {
		c := dialTLS(t, address)
		send(t, c, "GET /healthz HTTP/1.1\r\nHost: local")
		return waits(c)
	},
	"a preflight without its body": func(t *testing.T, address string) func() error {
		c := dialTLS(t, address)
		send(t, c, "OPTIONS /echo HTTP/1.1\r\nHost: "+address+"\r\nOrigin: https://"+address+"\r\nAccess-Control-Request-Method: POST\r\nContent-Length: 100\r\n\r\n")
		return waits(c)
	},
	"a body that trickles": func(t *testing.T, address string) func() error {
		c := dialTLS(t, address)
		send(t, c, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
		return func() error { _, err := io.WriteString(c, "x"); return err }
	},
	"a body that the server would have to ask for": func(t *testing.T, address string) func() error {
		c := dialTLS(t, address)
		send(t, c, "POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n")
		return waits(c)
	},
	"answers that are not read": func(t *testing.T, address string) func() error {
		c := dialTLS(t, address)
		require.NoError(t, c.NetConn().(*net.TCPConn).SetReadBuffer(4<<10))
		many := strings.Repeat("GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 1000)
		return func() error { _, err := io.WriteString(c, many); return err }
	},
	"HTTP/2 without a window": func(t *testing.T, address string) func() error {
		c := dial2(t, address, 0)
		return func() error { return c.ask("/healthz", true) }
	},
	"HTTP/2 without a window, with a wrong token": func(t *testing.T, address string) func() error {
		c := dial2(t, address, 0)
		return func() error { return c.ask("/echo", true, "authorization", "Bearer x") }
	},
	"HTTP/2 without a window, with a header that is too long": func(t *testing.T, address string) func() error {
		c := dial2(t, address, 0)
		return func() error { return c.ask("/echo", true, "x-long", strings.Repeat("a", 33<<10)) }
	},
	"HTTP/2 without a window, with a header that is invalid": func(t *testing.T, address string) func() error {
		c := dial2(t, address, 0)
		return func() error { return c.ask("/echo", true, "connection", "close") }
	},
	"HTTP/2 without its body": func(t *testing.T, address string) func() error {
		c := dial2(t, address, 1<<20)
		return func() error { return c.ask("/echo", false) }
	},
	"HTTP/2 that only asks whether the server is there": func(t *testing.T, address string) func() error {
		c := dial2(t, address, 0)
		return func() error { return c.framer.WritePing(false, [8]byte{}) }
	},
	"HTTP/2 that resets each stream": func(t *testing.T, address string) func() error {
		c := dial2(t, address, 0)
		return func() error {
			if err := c.ask("/healthz", false); err != nil {
				return err
			}
			return c.framer.WriteRSTStream(c.next-2, http2.ErrCodeCancel)
		}
	},
}

func dialTLS(t *testing.T, address string) *tls.Conn {
	t.Helper()
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// waits returns what waits for the server to close a connection, for a moment.
func waits(c net.Conn) func() error {
	return func() error {
		if err := c.SetReadDeadline(time.Now().Add(5 * time.Millisecond)); err != nil {
			return err
		}
		if _, err := c.Read(make([]byte, 1024)); !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		return nil
	}
}

// attack has so many attackers of a kind hold connections, until the test ends. It returns when each has begun. ended
// is closed when the server has closed all their connections.
func attack(t *testing.T, address string, kind func(*testing.T, string) func() error, connections int) (ended <-chan struct{}) {
	t.Helper()
	stop, over := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { <-over }) // the attackers' connections are closed before
	var attacking sync.WaitGroup
	for range connections {
		again := kind(t, address)
		_ = again()
		attacking.Go(func() {
			pause := time.NewTicker(5 * time.Millisecond)
			defer pause.Stop()
			for again() == nil {
				select {
				case <-stop:
					return
				case <-pause.C:
				}
			}
		})
	}
	go func() { attacking.Wait(); close(over) }()
	t.Cleanup(func() { close(stop) })
	return over
}

// filled is how long attacks take until what they hold is full. On a slow machine they are weaker.
const filled = time.Second

// TestAttackConnectionsWithoutToken: clients without a token hold all connections, and block no other client. They
// succeed when their connections count as those of authenticated clients do; see guards_test.go.
func TestAttackConnectionsWithoutToken(t *testing.T) {
	known := tokens(t)
	token, _ := issued(t, known, auth.Token{Scopes: []auth.Scope{auth.Read}})
	const connections = 4
	options := Options{TLS: certificate(t), Tokens: known, Limits: Limits{Connections: connections, Refusal: time.Hour, Header: time.Hour, Body: time.Hour, Stall: time.Hour, Failures: 1e6}}
	servers := map[string]*running{}
	for name, kind := range attackers {
		servers[name] = start(t, options)
		attack(t, servers[name].address, kind, connections)
	}
	time.Sleep(filled)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var asking sync.WaitGroup
	for name, r := range servers {
		asking.Go(func() {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/echo", nil)
			assert.NoError(t, err)
			request.Header.Set("Authorization", "Bearer "+token)
			response, err := r.client.Do(request)
			if assert.NoError(t, err, name) {
				assert.Equal(t, http.StatusOK, response.StatusCode, name)
				assert.NoError(t, response.Body.Close())
			}
		})
	}
	asking.Wait()
}

// TestAttackRefusalsThatStall: the connection of a request without a token ends if the client does not take the answer,
// even if the client keeps sending. There are enough connections for all.
func TestAttackRefusalsThatStall(t *testing.T) {
	t.Parallel() // it waits for most of its time
	r := start(t, Options{TLS: certificate(t), Tokens: tokens(t), Limits: Limits{Refusal: 300 * time.Millisecond, Header: 2 * time.Second, Stall: time.Hour, Body: time.Hour, Failures: 1e6}})
	ended := map[string]<-chan struct{}{}
	for name, kind := range attackers {
		switch name {
		case "idle", "HTTP/2 without its body", "HTTP/2 that only asks whether the server is there", "HTTP/2 that resets each stream":
			continue // each answer is taken, or not wanted
		}
		ended[name] = attack(t, r.address, kind, 2)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	for name, closed := range ended {
		select {
		case <-closed:
		case <-ctx.Done():
			t.Errorf("the connections are still open: %s", name)
		}
	}
}

// TestAttackManyRefusals: clients without a token open many streams over HTTP/2 whose answers they give no window, on
// many connections. Only some hold their headers: 1,000 connections of 100 held 4 GB. The controls are few streams, and
// answers that are taken.
func TestAttackManyRefusals(t *testing.T) {
	for _, test := range []struct {
		name                 string
		connections, streams int
		window               uint32
		stay                 int // connections, at most
		ends                 bool
	}{
		{"many", 2 * maxRefusing / maxStreams, maxStreams, 0, maxRefusing/maxStreams + 1, true},
		{"control: few", maxRefusing / maxStreams / 2, maxStreams, 0, maxRefusing / maxStreams / 2, false},
		{"control: answers that are taken", 2 * maxRefusing / maxStreams, maxStreams, 1 << 20, 2 * maxRefusing / maxStreams, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			known := tokens(t)
			token, _ := issued(t, known, auth.Token{Scopes: []auth.Scope{auth.Read}})
			r := start(t, Options{TLS: certificate(t), Tokens: known, Limits: Limits{Refusal: time.Hour, Stall: time.Hour, Failures: 1e6, Drain: time.Millisecond}})
			var ended atomic.Int64
			var reading sync.WaitGroup
			var clients []*client2
			for i := range test.connections {
				c := dial2(t, r.address, test.window)
				clients = append(clients, c)
				var answered atomic.Int64
				reading.Go(func() {
					defer ended.Add(1)
					for {
						frame, err := c.framer.ReadFrame()
						if err != nil {
							return
						}
						if data, ok := frame.(*http2.DataFrame); ok && data.StreamEnded() {
							answered.Add(1)
						}
					}
				})
				for range test.streams {
					if i%2 == 0 {
						_ = c.ask("/healthz", true, "cookie", strings.Repeat("a", 3900))
					} else {
						_ = c.ask("/echo", true, "authorization", "Bearer x", "cookie", strings.Repeat("a", 3900))
					}
				}
				if test.window > 0 { // a busy machine takes its time, and further answers would wait beside these
					require.Eventually(t, func() bool { return int(answered.Load()) == test.streams }, time.Minute, time.Millisecond)
				}
			}
			if test.ends {
				assert.Eventually(t, func() bool { return test.connections-int(ended.Load()) <= test.stay }, 15*time.Second, time.Millisecond)
			} else {
				time.Sleep(filled / 2)
				assert.Zero(t, ended.Load())
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/echo", nil)
			require.NoError(t, err)
			request.Header.Set("Authorization", "Bearer "+token)
			response, err := r.client.Do(request)
			require.NoError(t, err)
			assert.Equal(t, http.StatusOK, response.StatusCode)
			assert.NoError(t, response.Body.Close())
			for _, c := range clients {
				_ = c.conn.Close()
			}
			reading.Wait()
		})
	}
}

// TestAttackRefusalsBesideARequest: a client with a token leaves answers to requests without one unread, over HTTP/2,
// on connections that have a request of the token's as well. Others' health checks over HTTP/2 are answered: they were
// reset in place of these connections.
func TestAttackRefusalsBesideARequest(t *testing.T) {
	for _, test := range []struct {
		name                 string
		connections, streams int
		ends                 bool
	}{
		{"many", maxRefusing/maxStreams + 4, maxStreams - 1, true}, {"one on each", maxRefusing + 4, 1, true},
		{"control: few", maxRefusing / maxStreams / 2, maxStreams - 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			known := tokens(t)
			token, _ := issued(t, known, auth.Token{Scopes: []auth.Scope{auth.Read}})
			var waiting atomic.Int64
			wait := Endpoint{Pattern: "/wait", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				waiting.Add(1)
				<-r.Context().Done()
			})}
			r := start(t, Options{TLS: certificate(t), Tokens: known, Limits: Limits{Requests: 1000, Rate: 1e6, Burst: 1e6, Refusal: time.Hour, Stall: time.Hour, Failures: 1e6, Drain: time.Millisecond}}, wait)
			var ended atomic.Int64
			var reading sync.WaitGroup
			var clients []*client2
			for range test.connections {
				c := dial2(t, r.address, 0)
				clients = append(clients, c)
				reading.Go(func() {
					defer ended.Add(1)
					for {
						if _, err := c.framer.ReadFrame(); err != nil {
							return
						}
					}
				})
				require.NoError(t, c.ask("/wait", true, "authorization", "Bearer "+token))
			}
			require.Eventually(t, func() bool { return int(waiting.Load()) == test.connections }, time.Minute, time.Millisecond)
			for _, c := range clients {
				for range test.streams {
					_ = c.ask("/healthz", true) // the connection may have ended
				}
			}
			if test.ends {
				require.Eventually(t, func() bool { return ended.Load() > 0 }, 15*time.Second, time.Millisecond)
			}
			for range 10 {
				transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
				client := &http.Client{Transport: transport}
				response, err := client.Get(r.url + "/healthz")
				require.NoError(t, err)
				assert.Equal(t, http.StatusOK, response.StatusCode)
				assert.Equal(t, 2, response.ProtoMajor)
				assert.NoError(t, response.Body.Close())
				transport.CloseIdleConnections()
			}
			if !test.ends {
				assert.Zero(t, ended.Load())
			}
			for _, c := range clients {
				_ = c.conn.Close()
			}
			reading.Wait()
		})
	}
}

// TestAttackManyHeaders: clients without a token hold many headers over HTTP/2, which take much more memory than bytes
// on the way. Only a few have the whole time of a refusal.
func TestAttackManyHeaders(t *testing.T) {
	const connections, patient = 64, 4
	r := start(t, Options{TLS: certificate(t), Tokens: tokens(t), Limits: Limits{Connections: connections, Refusal: time.Hour, Stall: time.Hour, Failures: 1e6}})
	once := func(t *testing.T, address string) (again func() error) {
		c := dial2(t, address, 0)
		require.NoError(t, c.ask("/echo", true, "authorization", "Bearer x"))
		return waits(c.conn)
	}
	attack(t, r.address, once, patient) // they are the patient ones
	time.Sleep(filled)
	select {
	case <-attack(t, r.address, once, 2*patient):
	case <-time.After(15 * time.Second):
		t.Error("the connections are still open")
	}
}

// TestAttackStop: clients without a token do not delay the stop of a server.
func TestAttackStop(t *testing.T) {
	t.Parallel() // it waits for most of its time
	options := Options{TLS: certificate(t), Tokens: tokens(t), Limits: Limits{Refusal: time.Hour, Header: time.Hour, Body: time.Hour, Stall: time.Hour, Failures: 1e6, Drain: time.Hour}}
	servers := map[string]*running{}
	for name, kind := range attackers {
		servers[name] = start(t, options)
		attack(t, servers[name].address, kind, 2)
	}
	time.Sleep(filled)
	for _, r := range servers {
		r.stop()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	for name, r := range servers {
		select {
		case err := <-r.stopped:
			require.NoError(t, err)
			r.stopped <- nil
		case <-ctx.Done():
			t.Errorf("the server does not stop: %s", name)
		}
	}
}

// TestAttackRequestsForNothing: "OPTIONS *", which net/http would answer itself, needs a token as all else does, and
// counts with the other refusals.
func TestAttackRequestsForNothing(t *testing.T) {
	r := start(t, Options{Tokens: tokens(t)})
	c, err := net.Dial("tcp", r.address)
	require.NoError(t, err)
	defer c.Close()
	send(t, c, "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusUnauthorized, response.StatusCode)
}

// TestAttackLongFrames: a connection over HTTP/2 does not keep a frame of a megabyte, which needs no token. The control
// is one of the length that each server must take; RFC 9113 has the client ignore frames of an unknown type.
func TestAttackLongFrames(t *testing.T) {
	r := start(t, Options{TLS: certificate(t), Tokens: tokens(t)})
	for length, taken := range map[int]bool{frameBytes: true, frameBytes + 1: false} {
		c := dial2(t, r.address, 1<<20)
		require.NoError(t, c.framer.WriteRawFrame(0xbe, 0, 0, make([]byte, length)))
		require.NoError(t, c.framer.WritePing(false, [8]byte{}))
		answered, err := false, error(nil)
		for frame := http2.Frame(nil); err == nil && !answered; {
			if frame, err = c.framer.ReadFrame(); err == nil {
				ping, ok := frame.(*http2.PingFrame)
				answered = ok && ping.IsAck()
			}
		}
		assert.Equal(t, taken, answered, "%d bytes", length)
	}
}

// TestAttackUnreadPings: a client without a token that asks for answers of HTTP/2 itself and takes none of them does not
// hold its connection, and up to 10,000 frames in the server's memory, for as long as a client with a token.
func TestAttackUnreadPings(t *testing.T) {
	for _, running := range []bool{false, true} {
		t.Run(map[bool]string{false: "guarded", true: "control: a request of a client with a token"}[running], func(t *testing.T) {
			listener, err := net.Listen("tcp", "localhost:0")
			require.NoError(t, err)
			held := newConnections(listener, Limits{Connections: 1, Refusal: 50 * time.Millisecond, Stall: time.Second})
			defer held.Close()
			client, err := net.Dial("tcp", listener.Addr().String())
			require.NoError(t, err)
			defer client.Close()
			accepted, err := held.Accept()
			require.NoError(t, err)
			defer accepted.Close()
			if running {
				request := httptest.NewRequest(http.MethodGet, "/", nil)
				defer accepted.(*connection).begin(request, func() {})()
			}
			began := time.Now()
			_, err = accepted.Write(make([]byte, 64<<20)) // more than the system holds
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			assert.Equal(t, running, time.Since(began) > 900*time.Millisecond)
		})
	}
}

// TestAttackEndlessFrames: connections of clients without a token that always send, such as frames of HTTP/2 that need
// no answer of a handler, are read slowly after a while, all of them together. A hundred of them had other clients wait
// for seconds. The control is one with an authenticated request, which is read as fast as it sends from then on.
func TestAttackEndlessFrames(t *testing.T) {
	const senders, size, window = 20, 4 * unaskedBytes, 200 * time.Millisecond
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	held := newConnections(listener, Limits{Connections: senders, Refusal: time.Minute, Stall: time.Minute})
	defer held.Close()
	var counts [senders]atomic.Int64
	var servers []net.Conn
	var all sync.WaitGroup
	began := time.Now()
	for i := range senders {
		client, err := net.Dial("tcp", listener.Addr().String())
		require.NoError(t, err)
		defer client.Close()
		accepted, err := held.Accept()
		require.NoError(t, err)
		servers = append(servers, accepted)
		all.Go(func() { _, _ = client.Write(make([]byte, size)) }) // until the server closes it
		all.Go(func() {
			for buffer := make([]byte, 64<<10); ; {
				n, err := accepted.Read(buffer)
				counts[i].Add(int64(n))
				if err != nil {
					return
				}
			}
		})
	}
	time.Sleep(window)
	sum := int64(0)
	for i := range counts {
		sum += counts[i].Load()
	}
	paces := int64(time.Since(began)/pace) + senders
	assert.LessOrEqual(t, sum, senders*(unaskedBytes+64<<10)+2*paces*pacedBytes)
	assert.GreaterOrEqual(t, sum, int64(unaskedBytes), "the control")
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	end := servers[0].(*connection).begin(request, func() {})
	assert.Eventually(t, func() bool { return counts[0].Load() == size }, 30*time.Second, time.Millisecond)
	end()
	for _, one := range servers {
		require.NoError(t, one.Close())
	}
	all.Wait()
	assert.Zero(t, held.paced)
}

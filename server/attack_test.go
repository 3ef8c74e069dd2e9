package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/server/auth"
)

// attackers are clients without a token that hold a connection. Each returns a function that it repeats until an
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
	"a body of a request that net/http answers itself": func(t *testing.T, address string) func() error {
		c := dialTLS(t, address)
		send(t, c, "POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: nothing\r\nContent-Length: 100000\r\n\r\n")
		return func() error { _, err := io.WriteString(c, "x"); return err }
	},
	"answers that are not read": func(t *testing.T, address string) func() error {
		c := dialTLS(t, address)
		require.NoError(t, c.NetConn().(*net.TCPConn).SetReadBuffer(4<<10))
		many := strings.Repeat("GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 1000)
		return func() error { _, err := io.WriteString(c, many); return err }
	},
}

func dialTLS(t *testing.T, address string) *tls.Conn {
	t.Helper()
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, DynamicRecordSizingDisabled: true})
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

// filled is the time until attacks hold all that they can. On a slow machine they are weaker.
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
	limits := Limits{Refusal: 300 * time.Millisecond, Stall: time.Hour, Body: time.Hour, Failures: 1e6}
	end(t, limits, "idle", "a handshake that stalls", "half of a header")
}

// TestAttackHeadersThatStall: a connection ends whose handshake, or first header, does not come whole.
func TestAttackHeadersThatStall(t *testing.T) {
	limits := Limits{Refusal: time.Hour, Stall: time.Hour, Body: time.Hour, Header: 2 * time.Second}
	var others []string
	for name := range attackers {
		if name != "a handshake that stalls" && name != "half of a header" {
			others = append(others, name)
		}
	}
	end(t, limits, others...)
}

// end checks that the server ends the connections of all attackers but some.
func end(t *testing.T, limits Limits, but ...string) {
	t.Helper()
	t.Parallel() // it waits for most of its time
	r := start(t, Options{TLS: certificate(t), Tokens: tokens(t), Limits: limits})
	ended := map[string]<-chan struct{}{}
	for name, kind := range attackers {
		if !slices.Contains(but, name) {
			ended[name] = attack(t, r.address, kind, 2)
		}
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

// liveHeap returns how many bytes of the heap are in use.
func liveHeap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestAttackManyHeaders: connections send headers of many short fields that do not end, of which net/http makes thirty
// times their length, also behind a POST and blank lines. The server keeps none of these fields. The control is a
// header of as many bytes in one field.
func TestAttackManyHeaders(t *testing.T) {
	const connections, length = 200, 16 << 10
	for _, test := range []struct{ encrypted, behind bool }{{false, false}, {true, false}, {false, true}} {
		encrypted := test.encrypted
		options, connect := Options{Tokens: tokens(t), Limits: Limits{Header: time.Hour, Refusal: time.Hour}}, dial
		if encrypted {
			options.TLS = certificate(t)
			connect = func(t *testing.T, r *running) net.Conn { return dialTLS(t, r.address) }
		}
		r := start(t, options)
		empty := liveHeap()
		for range connections {
			c, before := connect(t, r), ""
			if test.behind {
				send(t, c, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
				assert.Contains(t, firstLine(t, c), "401")
				before = "\r\n\r\n"
			}
			send(t, c, before+"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"+strings.Repeat("a:\r\n", length/4))
		}
		time.Sleep(filled)
		held := (liveHeap() - empty) / connections
		t.Logf("%+v: %d KB for each connection", test, held>>10)
		assert.Less(t, held, int64(6*length), "%+v", test) // 2 of them are the client's
		c := connect(t, r)
		send(t, c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\na: "+strings.Repeat("x", length)+"\r\n\r\n")
		assert.Contains(t, firstLine(t, c), "200")
	}
}

// TestHeadersAreCountedAsNetHTTPReadsThem: random headers end where net/http ends them, in no fewer lines than net/http
// has fields.
func TestHeadersAreCountedAsNetHTTPReadsThem(t *testing.T) {
	random := mathrand.New(mathrand.NewPCG(1, 2))
	parts := []string{"a: b", "a", ":", " ", "\t", "\r", "\n", "\r\n", "\r\n", "\n", "\r\n\r\n", "\x00", "Host: x\r\n", "GET / HTTP/1.1"}
	whole := 0
	for range 200_000 {
		text := "GET / HTTP/1.1\r\nHost: x\r\n"
		for range random.IntN(12) {
			text += parts[random.IntN(len(parts))]
		}
		in := bufio.NewReader(strings.NewReader(text))
		r, err := http.ReadRequest(in)
		if err != nil {
			continue // net/http refuses it, or waits for the rest
		}
		whole++
		blank := strings.Repeat("\r\n", random.IntN(3))
		var h header
		end := len(text) - in.Buffered()
		h.add([]byte(blank + text[:end-1]))
		require.False(t, h.ended, "%q", text)
		h.add([]byte(text[end-1:]))
		require.True(t, h.ended, "%q", text)
		require.GreaterOrEqual(t, h.lines, 1+fieldsOf(r), "%q", text)
	}
	assert.Greater(t, whole, 1000)
}

// TestBodiesBesideHeaders: long headers of clients without a token that do not end take no place of requests, however
// slowly these arrive, of which much is in one record of TLS.
func TestBodiesBesideHeaders(t *testing.T) {
	const connections = 32
	of := tokens(t)
	token, _ := issued(t, of, auth.Token{Scopes: []auth.Scope{auth.Read}})
	r := start(t, Options{Tokens: of, TLS: certificate(t), Limits: Limits{Connections: connections + 2, Header: time.Hour, Refusal: time.Hour}})
	connected := dialTLS(t, r.address)
	for range connections {
		send(t, dialTLS(t, r.address), "GET /healthz HTTP/1.1\r\nHost: localhost\r\na: "+strings.Repeat("x", 12_000))
	}
	body := strings.Repeat("x", 30_000)
	request := "POST /echo HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
	send(t, connected, request)
	assert.Contains(t, firstLine(t, connected), "200")
	client, err := net.Dial("tcp", r.address)
	require.NoError(t, err)
	slow := tls.Client(slowly{client}, &tls.Config{InsecureSkipVerify: true, DynamicRecordSizingDisabled: true})
	defer slow.Close()
	send(t, slow, request)
	assert.Contains(t, firstLine(t, slow), "200")
}

// slowly writes with pauses.
type slowly struct{ net.Conn }

func (c slowly) Write(p []byte) (n int, err error) {
	for part := range slices.Chunk(p, 4<<10) {
		written, err := c.Conn.Write(part)
		if n += written; err != nil {
			return n, err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return n, nil
}

// TestRecordsOfAnyLength: a body is read in records of whatever lengths, many of which have arrived before they are
// read.
func TestRecordsOfAnyLength(t *testing.T) {
	r := start(t, Options{TLS: certificate(t)})
	const length = 1 << 20
	head := "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + strconv.Itoa(length) + "\r\n\r\n"
	for _, records := range [][]int{{14_000}, {16_000}, {16 << 10}, {24_000}, {24 << 10}, {30_000}, {15_000, 16 << 10}, {1000, 15_000}} {
		c, err := net.Dial("tcp", r.address)
		require.NoError(t, err)
		held := &heldBack{Conn: c}
		client := tls.Client(held, &tls.Config{InsecureSkipVerify: true, DynamicRecordSizingDisabled: true})
		require.NoError(t, client.Handshake())
		held.on = true
		send(t, client, head)
		for left, i := length, 0; left > 0; i++ {
			n := min(left, records[i%len(records)])
			send(t, client, strings.Repeat("x", n))
			left -= n
		}
		_, err = c.Write(held.kept)
		require.NoError(t, err, records)
		assert.Contains(t, firstLine(t, client), "200", records)
		require.NoError(t, c.Close())
	}
}

// TestRefusalsOfLongBodies: a client that sends a long body behind a header that is refused gets the answer.
func TestRefusalsOfLongBodies(t *testing.T) {
	for name, options := range map[string]Options{"plain": {}, "over TLS": {TLS: certificate(t)}} {
		t.Run(name, func(t *testing.T) {
			r := start(t, options)
			body := strings.Repeat("x", 4<<20)
			header := "POST /echo HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("a: b\r\n", maxFields+50) +
				"Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
			for range 10 {
				var c net.Conn
				var err error
				if c, err = net.Dial("tcp", r.address); options.TLS != nil {
					c, err = tls.Dial("tcp", r.address, &tls.Config{InsecureSkipVerify: true})
				}
				require.NoError(t, err)
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					_, _ = io.WriteString(c, header+body)
				}()
				assert.Contains(t, firstLine(t, c), "431")
				require.NoError(t, c.Close())
				<-sent
			}
		})
	}
}

// heldBack keeps what is written while it is on.
type heldBack struct {
	net.Conn
	on   bool
	kept []byte
}

func (c *heldBack) Write(p []byte) (int, error) {
	if !c.on {
		return c.Conn.Write(p)
	}
	c.kept = append(c.kept, p...)
	return len(p), nil
}

// TestAttackLongHandshakes: clients send the first message of a handshake, or what follows it, without end, of which
// crypto/tls makes up to thirty times its length. The control is a message of a length that clients need, and a request
// that is longer.
func TestAttackLongHandshakes(t *testing.T) {
	r := start(t, Options{TLS: certificate(t), Limits: Limits{Header: time.Hour, Refusal: time.Hour}})
	for length, ends := range map[int]bool{helloBytes / 2: false, helloBytes + 1: true} {
		c, err := net.Dial("tcp", r.address)
		require.NoError(t, err)
		defer c.Close()
		message := append([]byte{1, 0, 0xf0, 0}, make([]byte, length-4)...) // of 61,440 bytes
		for part := range slices.Chunk(message, 8<<10) {
			_, err = c.Write(append([]byte{handshakeRecord, 3, 1, byte(len(part) >> 8), byte(len(part))}, part...))
			require.NoError(t, err)
		}
		require.NoError(t, c.SetReadDeadline(time.Now().Add(map[bool]time.Duration{true: 10 * time.Second, false: filled}[ends])))
		_, err = c.Read(make([]byte, 1))
		assert.Equal(t, ends, !errors.Is(err, os.ErrDeadlineExceeded), "%d bytes: %v", length, err)
	}
	for name, test := range map[string]struct {
		encrypted, established, delivers, handled bool
		longer                                    int
		ends                                      bool
	}{
		"a second first message":    {true, false, false, false, 2 * handshakeBytes, true},
		"messages during a request": {true, true, false, true, 2 * recordBytes, true},
		"small records in a header": {true, true, true, false, 4 * recordBytes, true},
		"control: a handshake":      {true, false, false, false, handshakeBytes, false},
		"control: a long request":   {true, true, true, true, 4 * recordBytes, false},
		"control: without TLS":      {false, false, false, false, 2 * recordBytes, false},
	} {
		client, server := net.Pipe()
		defer client.Close()
		s := &socket{stallConn: stallConn{server, time.Hour}, gone: make(chan struct{})}
		if test.encrypted {
			s.limits = &limits{helloBytes, handshakeBytes, overheadBytes}
		}
		s.handled.Store(test.handled)
		s.greeted.Store(true)
		s.established.Store(test.established)
		record := append([]byte{23, 3, 3, 64, 0}, make([]byte, 16<<10)...)
		go func() { _, _ = client.Write(bytes.Repeat(record, 1+test.longer/len(record))[:test.longer]) }() // until it ends
		var err error
		for n := 0; err == nil && n < test.longer; n += 1 << 10 {
			_, err = io.ReadFull(s, make([]byte, 1<<10))
			if test.delivers {
				s.delivered()
			}
		}
		assert.Equal(t, test.ends, err != nil, "%s: %v", name, err)
	}
}

// TestHellosWithCertificates: a client resumes its session with a ticket that repeats its long certificate.
func TestHellosWithCertificates(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	names := make([]string, 500)
	for i := range names {
		names[i] = fmt.Sprintf("host-%03d.example", i)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: names, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	config := certificate(t)
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	config.ClientCAs.AddCert(parsed)
	r := start(t, Options{TLS: config})
	client := &tls.Config{InsecureSkipVerify: true, ServerName: "localhost", ClientSessionCache: tls.NewLRUClientSessionCache(1),
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	for n := range 3 {
		c, err := tls.Dial("tcp", r.address, client)
		require.NoError(t, err)
		send(t, c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		answer, err := io.ReadAll(c)
		require.NoError(t, err)
		assert.Contains(t, string(answer), "200 OK")
		assert.Equal(t, n > 0, c.ConnectionState().DidResume, n)
		require.NoError(t, c.Close())
	}
}

// TestPlainRequestsToTLS: a client that does not encrypt is told to.
func TestPlainRequestsToTLS(t *testing.T) {
	r := start(t, Options{TLS: certificate(t)})
	c := dial(t, r)
	send(t, c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Equal(t, http.StatusBadRequest, response.StatusCode)
	assert.Contains(t, string(text), "this server speaks HTTPS; write https://")
}

// TestAttackManyFields: a header of thousands of short fields, or of names of fields to come, takes twenty times its
// length, and requests may wait for hours. They are refused. The control is as many as a header may have.
func TestAttackManyFields(t *testing.T) {
	r := start(t, Options{Limits: Limits{Header: time.Hour, Idle: time.Hour}})
	empty, later := strings.Builder{}, strings.Builder{}
	for i := range 2 * maxFields {
		fmt.Fprintf(&empty, "a%d:\r\n", i)
		fmt.Fprintf(&later, ",a%d", i)
	}
	for header, status := range map[string]int{
		empty.String():                      http.StatusRequestHeaderFieldsTooLarge,
		strings.Repeat("a:\r\n", maxFields): http.StatusRequestHeaderFieldsTooLarge,
		strings.Repeat("a: "+strings.Repeat("x", 45)+"\r\n", maxFields+1): http.StatusRequestHeaderFieldsTooLarge,
		"Trailer: a" + later.String() + "\r\n":                            http.StatusRequestHeaderFieldsTooLarge,
		"Other: a" + later.String() + "\r\n":                              http.StatusOK,
		strings.Repeat("a:\r\n", maxFields/2):                             http.StatusOK,
	} {
		for _, kept := range []bool{false, true} {
			c := dial(t, r)
			if kept {
				send(t, c, "HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
				response, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodHead})
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
			}
			send(t, c, "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"+header+"a:\r\n\r\n0\r\n\r\n")
			assert.Contains(t, firstLine(t, c), strconv.Itoa(status), "%.100s", header)
		}
	}
}

// TestHalfClosedConnections: clients send no more after their request, and are answered as others are. Each is about to
// be noticed as one that has gone when its token is looked at.
func TestHalfClosedConnections(t *testing.T) {
	of := tokens(t)
	token, _ := issued(t, of, auth.Token{Scopes: []auth.Scope{auth.Read}})
	r := start(t, Options{Tokens: of, Limits: Limits{Failures: 1e6}})
	for field, status := range map[string]int{"": http.StatusUnauthorized, "Authorization: Bearer " + token + "\r\n": http.StatusOK} {
		for range 50 {
			c := dial(t, r)
			send(t, c, "GET /echo HTTP/1.1\r\nHost: localhost\r\n"+field+"\r\n")
			require.NoError(t, c.(*net.TCPConn).CloseWrite())
			response, err := http.ReadResponse(bufio.NewReader(c), nil)
			require.NoError(t, err)
			content, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			assert.Equal(t, status, response.StatusCode)
			assert.NotEmpty(t, content)
		}
	}
}

// TestAttackNamesOfTrailers: a field Trailer names thousands of fields to come, of which net/http makes a map, and its
// body does not arrive. The control is as long a field of another name.
func TestAttackNamesOfTrailers(t *testing.T) {
	const connections = 100
	names := strings.Builder{}
	for i := range 5000 {
		fmt.Fprintf(&names, ",a%d", i)
	}
	r := start(t, Options{Tokens: tokens(t)})
	for _, field := range []string{"Other", "Trailer"} {
		before := liveHeap()
		for range connections {
			send(t, dial(t, r), "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"+field+": a"+names.String()+"\r\n\r\n")
		}
		time.Sleep(restTime / 2)
		held := (liveHeap() - before) / connections
		t.Logf("%s: %d KB for each connection", field, held>>10)
		assert.Less(t, held, int64(200<<10), field)
		time.Sleep(2 * restTime)
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

package network

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/manifests"
)

// rawServer accepts connections, over which a test sends any bytes.
type rawServer struct {
	port        int
	certificate string // a file; empty for a server without TLS
}

// serveRaw calls handle for each connection, and closes it then. protocols are those that a
// server with TLS speaks, the best first; without any, there is no TLS.
func serveRaw(t testing.TB, handle func(net.Conn), protocols ...string) *rawServer {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	s := &rawServer{port: listener.Addr().(*net.TCPAddr).Port}
	var config *tls.Config
	if len(protocols) > 0 {
		donor := serve(t, secure, http.NotFound)
		config = &tls.Config{Certificates: donor.TLS.Certificates, NextProtos: protocols}
		s.certificate = filepath.Join(t.TempDir(), "authorities.pem")
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: donor.Certificate().Raw})
		require.NoError(t, os.WriteFile(s.certificate, block, 0o600))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		acceptRaw(listener, config, handle)
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	return s
}

func acceptRaw(listener net.Listener, config *tls.Config, handle func(net.Conn)) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		running.Go(func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
			_ = conn.(*net.TCPConn).SetWriteBuffer(64 << 10)
			if config == nil {
				handle(conn)
				return
			}
			if secured := tls.Server(conn, config); secured.Handshake() == nil {
				handle(secured)
			}
		})
	}
}

func (s *rawServer) url() string {
	scheme := "http"
	if s.certificate != "" {
		scheme = "https"
	}
	return fmt.Sprintf("%s://127.0.0.1:%d/", scheme, s.port)
}

// open returns a session that may send GET and POST to the server.
func (s *rawServer) open(t testing.TB) *Session {
	t.Helper()
	scheme, _, _ := strings.Cut(s.url(), ":")
	permission := manifests.NetworkPermission{Host: "127.0.0.1", Schemes: []string{scheme}, Ports: []int{s.port}, Methods: []string{"GET", "POST"}}
	grant := grantOf(permission)
	grant.Authorities = s.certificate
	return open(t, Options{Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grant}})
}

// answerOK reads the requests of a connection, one after the other, and answers each.
func answerOK(conn net.Conn, after func(*http.Request)) {
	reader := bufio.NewReader(conn)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, request.Body); err != nil {
			return
		}
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		after(request)
	}
}

// negotiated is the protocol that a connection speaks.
func negotiated(conn net.Conn) string {
	if secured, ok := conn.(*tls.Conn); ok {
		return secured.ConnectionState().NegotiatedProtocol
	}
	return ""
}

// answerThen answers one request, over HTTP/2 where the client can, then sends unasked repeatedly, until the client
// closes the connection or so many bytes were sent. It returns their number.
func answerThen(conn net.Conn, unasked []byte, bytes int64) int64 {
	if negotiated(conn) == "h2" {
		if answerHTTP2(conn) != nil {
			return 0
		}
		go io.Copy(io.Discard, conn)
	} else {
		request, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return 0
		}
		request.Body.Close()
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	}
	var sent int64
	for sent < bytes {
		n, err := conn.Write(unasked)
		sent += int64(n)
		if err != nil {
			break
		}
	}
	return sent
}

// Types of frames of HTTP/2.
const (
	frameData     = 0x0
	frameHeaders  = 0x1
	frameSettings = 0x4
	framePing     = 0x6
	frameUnknown  = 0xee
)

// frame returns a frame of HTTP/2 (RFC 9113, section 4.1).
func frame(kind, flags byte, stream uint32, payload string) []byte {
	size := len(payload)
	header := []byte{byte(size >> 16), byte(size >> 8), byte(size), kind, flags}
	return append(binary.BigEndian.AppendUint32(header, stream), payload...)
}

// answerHTTP2 answers the first request of a connection.
func answerHTTP2(conn net.Conn) error {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	if _, err := io.ReadFull(conn, make([]byte, len(preface))); err != nil {
		return err
	}
	header := make([]byte, 9)
	for header[3] != frameHeaders {
		if _, err := io.ReadFull(conn, header); err != nil {
			return err
		}
		size := int64(header[0])<<16 | int64(header[1])<<8 | int64(header[2])
		if _, err := io.CopyN(io.Discard, conn, size); err != nil {
			return err
		}
	}
	const endHeaders, endStream, status200 = 0x4, 0x1, "\x88"
	stream := binary.BigEndian.Uint32(header[5:])
	answer := slices.Concat(
		frame(frameSettings, 0, 0, ""), frame(frameHeaders, endHeaders, stream, status200), frame(frameData, endStream, stream, "ok"))
	_, err := conn.Write(answer)
	return err
}

const (
	unaskedServer      = "CAISSON_TEST_UNASKED_SERVER"
	unaskedCertificate = "CAISSON_TEST_UNASKED_CERTIFICATE"
	unaskedClient      = "CAISSON_TEST_UNASKED_CLIENT"
)

// TestAttackStderr: what a server says unasked is not printed by a library of ours. Clients run in separate processes,
// whose standard error the test checks.
func TestAttackStderr(t *testing.T) {
	if os.Getenv(unaskedServer) != "" {
		askUnasked(t)
		return
	}
	const told = "the secret that the server was sent"
	cases := map[string]struct {
		handle    func(net.Conn)
		protocols []string
		control   string // what the control prints
	}{
		"at once after the body": {func(conn net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"+told)
				io.Copy(io.Discard, conn)
			}
		}, nil, told},
		"later": {func(conn net.Conn) {
			answerOK(conn, func(*http.Request) {
				time.Sleep(50 * time.Millisecond)
				io.WriteString(conn, told)
			})
		}, nil, told},
		"later over TLS": {func(conn net.Conn) {
			answerOK(conn, func(*http.Request) {
				time.Sleep(50 * time.Millisecond)
				io.WriteString(conn, told)
			})
		}, []string{"http/1.1"}, told},
		"frames of an unknown type": {func(conn net.Conn) {
			answerThen(conn, bytes.Repeat(frame(frameUnknown, 0, 0, ""), 1000), 1)
			io.Copy(io.Discard, conn)
		}, []string{"h2", "http/1.1"}, "unhandled response frame type"},
		"frames of an answer that is over": {func(conn net.Conn) {
			answerThen(conn, frame(frameData, 0, 1, "more"), 1)
			io.Copy(io.Discard, conn)
		}, []string{"h2", "http/1.1"}, "DATA"},
	}
	for _, name := range testsize.Sample(slices.Sorted(maps.Keys(cases)), 3) {
		test := cases[name]
		t.Run(name, func(t *testing.T) {
			s := serveRaw(t, test.handle, test.protocols...)
			for try := 1; ; try++ { // on a busy machine the server may be late
				printed := stderrOf(t, s, "control")
				if try == 20 || strings.Contains(printed, test.control) {
					assert.Contains(t, printed, test.control, "the attack must work on net/http's client")
					break
				}
			}
			assert.Empty(t, stderrOf(t, s, "guarded"))
		})
	}
}

// stderrOf returns what a client's process prints on its standard error.
func stderrOf(t *testing.T, s *rawServer, client string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAttackStderr$", "-test.v")
	command.Env = append(os.Environ(), unaskedServer+"="+s.url(), unaskedCertificate+"="+s.certificate, unaskedClient+"="+client)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	require.NoError(t, command.Run(), "%s%s", &stdout, &stderr)
	require.Contains(t, stdout.String(), "PASS: TestAttackStderr")
	return stderr.String()
}

// askUnasked asks once, and gives the server time to send more.
func askUnasked(t *testing.T) {
	const patience = 300 * time.Millisecond
	target := os.Getenv(unaskedServer)
	if os.Getenv(unaskedClient) == "control" {
		require.NoError(t, errOf(io.ReadAll(must(newUnguarded(t, nil).get(t, target)).Body)))
		time.Sleep(patience)
		return
	}
	var port int
	require.NoError(t, errOf(fmt.Sscanf(target[strings.LastIndex(target, ":")+1:], "%d/", &port)))
	s := &rawServer{port: port, certificate: os.Getenv(unaskedCertificate)}
	session := s.open(t)
	assert.Equal(t, "ok", string(must(get(t, session, target)).Body))
	time.Sleep(patience)
	session.Close()
	time.Sleep(patience)
}

// TestAttackFloodAfterAnswer: a server that has answered cannot keep the client busy with further frames. The control
// reads all of them, and answers many.
func TestAttackFloodAfterAnswer(t *testing.T) {
	const flood = 4 << 20 // more than the buffers of an unread connection hold
	floods := map[string][]byte{
		"PING":       frame(framePing, 0, 0, "12345678"),
		"SETTINGS":   frame(frameSettings, 0, 0, ""),
		"empty DATA": frame(frameData, 0, 1, ""),
	}
	for _, name := range testsize.Sample(slices.Sorted(maps.Keys(floods)), 1) {
		unasked := floods[name]
		t.Run(name, func(t *testing.T) {
			sent := make(chan int64, 1)
			s := serveRaw(t, func(conn net.Conn) { sent <- answerThen(conn, bytes.Repeat(unasked, 1000), flood) }, "h2", "http/1.1")
			require.NoError(t, errOf(io.ReadAll(must(newUnguarded(t, nil).get(t, s.url())).Body)))
			require.GreaterOrEqual(t, <-sent, int64(flood), "the attack must work on net/http's client")

			session := s.open(t)
			before := goleak.IgnoreCurrent()
			require.NoError(t, errOf(get(t, session, s.url())))
			assert.Less(t, <-sent, int64(flood), "the connection is closed although the session is open")
			goleak.VerifyNone(t, before)
		})
	}
}

package network

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/manifests"
)

func TestMain(m *testing.M) {
	if isCGI() {
		if err := answerCGI(); err != nil {
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// names is a DNS server of the tests' own, on loopback.
type names struct {
	mu      sync.Mutex
	answers map[string][]string        // by name without the last dot
	answer  func(name string) []string // for names that are not in answers; may be nil
	conn    net.PacketConn
}

func newNames(t testing.TB, answers map[string][]string) *names {
	t.Helper()
	conn := must(net.ListenPacket("udp", "127.0.0.1:0"))
	n := &names{answers: answers, conn: conn}
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.serve()
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return n
}

func (n *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "udp", n.conn.LocalAddr().String())
	}}
}

func (n *names) serve() {
	buffer := make([]byte, 4096)
	for {
		size, from, err := n.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		var query dnsmessage.Message
		if query.Unpack(buffer[:size]) != nil || len(query.Questions) != 1 {
			continue
		}
		reply := n.reply(query)
		if packed, err := reply.Pack(); err == nil {
			_, _ = n.conn.WriteTo(packed, from)
		}
	}
}

func (n *names) reply(query dnsmessage.Message) dnsmessage.Message {
	question := query.Questions[0]
	name := question.Name.String()
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: query.ID, Response: true, Authoritative: true, RecursionAvailable: true},
		Questions: query.Questions,
	}
	found := n.lookup(name[:len(name)-1])
	if found == nil {
		reply.RCode = dnsmessage.RCodeNameError
	}
	header := dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: dnsmessage.ClassINET}
	for _, text := range found {
		address := netip.MustParseAddr(text)
		switch {
		case address.Is4() && question.Type == dnsmessage.TypeA:
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: address.As4()}})
		case address.Is6() && question.Type == dnsmessage.TypeAAAA:
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: address.As16()}})
		}
	}
	return reply
}

func (n *names) lookup(name string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if found, ok := n.answers[name]; ok {
		return found
	}
	if n.answer != nil {
		return n.answer(name)
	}
	return nil
}

// set changes what a name leads to.
func (n *names) set(name string, addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answers[name] = addresses
}

// setAnswer says where all names lead that are not fixed.
func (n *names) setAnswer(answer func(name string) []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answer = answer
}

// server is an HTTP server that counts the connections that reach it.
type server struct {
	*httptest.Server
	port        int
	connections atomic.Int64
	requests    atomic.Int64
}

type protocol string

const (
	plain  protocol = "HTTP"
	secure protocol = "TLS" // it prefers HTTP/2
)

func serve(t testing.TB, kind protocol, handler http.HandlerFunc) *server {
	t.Helper()
	return serveAt(t, kind, "127.0.0.1:0", handler, func(net.Conn) {})
}

// serveAt serves at an address, and calls connected for each connection.
func serveAt(t testing.TB, kind protocol, address string, handler http.HandlerFunc, connected func(net.Conn)) *server {
	t.Helper()
	listener := must(net.Listen("tcp", address))
	s := &server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		handler(w, r)
	}))
	s.Listener.Close()
	s.Listener = listener
	s.port = listener.Addr().(*net.TCPAddr).Port
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
			connected(conn)
		}
	}
	switch kind {
	case plain:
		s.Start()
	case secure:
		s.EnableHTTP2 = true
		s.StartTLS()
	}
	t.Cleanup(s.Close)
	return s
}

// authorities writes the certificate of a TLS server to a file.
func (s *server) authorities(t testing.TB) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "authorities.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	require.NoError(t, os.WriteFile(name, block, 0o600))
	return name
}

// at returns a URL on the server, under some host.
func (s *server) at(host, path string) string {
	scheme := "http"
	if s.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(s.port)) + path
}

// permit is a permission for a server under some host.
func (s *server) permission(host string, methods ...string) manifests.NetworkPermission {
	scheme := "http"
	if s.TLS != nil {
		scheme = "https"
	}
	return manifests.NetworkPermission{Host: host, Schemes: []string{scheme}, Ports: []int{s.port}, Methods: methods}
}

// everything is what a tool asks for that asks for all.
func everything(ports ...int) []manifests.NetworkPermission {
	return []manifests.NetworkPermission{{
		Host: "*", Schemes: []string{"https", "http"}, Ports: ports, Methods: []string{"GET", "HEAD", "POST", "PUT", "DELETE"},
	}}
}

func grantOf(p manifests.NetworkPermission, addresses ...string) manifests.NetworkGrant {
	g := manifests.NetworkGrant{NetworkPermission: p, Binding: manifests.Binding{Origin: "policy.yaml:7"}}
	for _, text := range addresses {
		g.Addresses = append(g.Addresses, netip.MustParsePrefix(text))
	}
	return g
}

func open(t testing.TB, options Options) *Session {
	t.Helper()
	return openWith(t, options, Limits{Calls: 10_000, Bytes: 1 << 30})
}

func openWith(t testing.TB, options Options, limits Limits) *Session {
	t.Helper()
	client := must(New(options))
	session := client.Open(limits)
	t.Cleanup(func() {
		session.Close()
		require.NoError(t, client.Close())
	})
	return session
}

func get(t testing.TB, s *Session, target string) (Response, error) {
	t.Helper()
	return s.Do(t.Context(), Request{URL: target, Timeout: 10 * time.Second})
}

// denied requires a refusal by permission, and returns its receipt's rule.
func denied(t testing.TB, err error) string {
	t.Helper()
	var failed *hostfuncs.Error
	require.ErrorAs(t, err, &failed)
	require.ErrorIs(t, err, hostfuncs.ErrDenied, "%v, because of %v", err, failed.Cause)
	require.NotNil(t, failed.Denial)
	return failed.Denial.Rule
}

// unguarded is a client as people write it. It records to which addresses it would connect, and connects only to those
// of loopback.
type unguarded struct {
	*http.Client
	mu    sync.Mutex
	dials []string
}

var errNotHere = errors.New("the tests stay on loopback")

func newUnguarded(t testing.TB, resolver *net.Resolver) *unguarded {
	t.Helper()
	u := &unguarded{}
	control := func(_ context.Context, _, address string, _ syscall.RawConn) error {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.dials = append(u.dials, address)
		host, _, err := net.SplitHostPort(address)
		host, _, _ = strings.Cut(host, "%")
		if parsed := net.ParseIP(host); err != nil || !parsed.IsLoopback() && !parsed.IsUnspecified() {
			return errNotHere
		}
		return nil
	}
	dialer := &net.Dialer{Resolver: resolver, ControlContext: control}
	transport := &http.Transport{
		DialContext:       dialer.DialContext,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2: true,
	}
	u.Client = &http.Client{Transport: transport, Timeout: 10 * time.Second}
	t.Cleanup(transport.CloseIdleConnections)
	return u
}

func (u *unguarded) get(t testing.TB, target string) (*http.Response, error) {
	t.Helper()
	answer, err := u.Get(target)
	if err == nil {
		t.Cleanup(func() { answer.Body.Close() })
	}
	return answer, err
}

func (u *unguarded) dialled() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]string(nil), u.dials...)
}

// hostCheck is what a plug-in system does that compares the first URL's host with a list of globs, and no more.
func hostCheck(allowed func(host string) bool, target string) bool {
	u, err := url.Parse(target)
	return err == nil && allowed(u.Hostname())
}

// must returns the result of a step that does not fail.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// errOf returns the error of a call whose result does not matter.
func errOf[T any](_ T, err error) error { return err }

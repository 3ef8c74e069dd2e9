package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// connections is a listener that holds a limited number of connections at a time. If there are as many, one more ends
// the one that has had no authenticated request for longest, so that clients without a token cannot block other
// clients. If all have authenticated requests, it waits until one does not.
type connections struct {
	net.Listener
	most    int           // [Limits.Connections]
	refusal time.Duration // [Limits.Refusal]
	stall   time.Duration // [Limits.Stall]
	header  int           // [Limits.HeaderBytes]
	encrypt *tls.Config   // nil for connections without TLS
	limits  *limits       // nil without TLS
	places  chan struct{} // has an element for each connection that has a place, see takePlace

	mu      sync.Mutex
	limit   int // of those that are held: most, or less for scarceTime after the system has run out of descriptors
	changed sync.Cond
	held    map[*connection]struct{}
	lowered time.Time   // when the limit was lowered
	raising *time.Timer // raises it; nil if it was never lowered
	closed  bool
}

func newConnections(l net.Listener, encrypt *tls.Config, limits Limits) *connections {
	c := &connections{
		Listener: l, most: limits.Connections, limit: limits.Connections, refusal: limits.Refusal,
		stall: limits.Stall, header: limits.HeaderBytes, held: map[*connection]struct{}{},
		places: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
	}
	c.changed.L = &c.mu
	if encrypt != nil {
		bounds := limitsOf(encrypt, limits.HeaderBytes)
		c.encrypt, c.limits = encrypting(encrypt), &bounds
	}
	return c
}

// Accept implements [net.Listener].
func (c *connections) Accept() (net.Conn, error) {
	accepted, err := c.Listener.Accept()
	if isScarce(err) {
		c.scarce(nil)
	}
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.held) >= c.limit && !c.closed {
		if oldest := c.longest(nil); oldest != nil {
			oldest.drop()
			continue
		}
		c.changed.Wait()
	}
	if c.closed {
		_ = accepted.Close()
		return nil, net.ErrClosed
	}
	if t, ok := accepted.(*net.TCPConn); ok {
		_ = t.SetWriteBuffer(sendBuffer) // only steady readers that are very slow need it
		_ = t.SetKeepAliveConfig(keepAlive)
		_ = endUnacknowledged(t, vanished)
	}
	held := c.hold(accepted)
	c.held[held] = struct{}{}
	return held, nil
}

// hold returns a connection to a client.
func (c *connections) hold(accepted net.Conn) *connection {
	s := &socket{stallConn: stallConn{accepted, c.stall}, limits: c.limits, gone: make(chan struct{})}
	held := &connection{Conn: s, socket: s, of: c, since: time.Now()}
	if c.encrypt != nil {
		held.tls = tls.Server(s, c.encrypt)
		held.Conn = held.tls
	}
	return held
}

// keepAlive, with endUnacknowledged, finds a client that has vanished, such as a phone without a network, in two
// minutes: until then, its stream cannot be opened again, and counts. Shorter interruptions end nothing.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 3}

// vanished is longer, since the system counts it while a slow client leaves no room in its window.
const vanished = 2 * time.Minute

// isScarce reports whether an error says that the system has no more descriptors.
func isScarce(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// scarce ends connections after the system has run out of descriptors: a quarter of those held become free, for other
// connections and for what requests open. For scarceTime, fewer may be held. But not fewer than half of the configured
// ones: the descriptors may be those of files that tools have open, and one tenant's requests, a quarter by default,
// must not be all that fit. It keeps the connection of the request that noticed, or nil.
func (c *connections) scarce(noticed *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Sub(c.lowered) < scarcePause {
		return
	}
	c.lowered = now
	fewer := max(len(c.held)*3/4, 1)
	c.limit = max(min(c.limit, fewer), (c.most+1)/2)
	if c.raising == nil {
		c.raising = time.AfterFunc(scarceTime, c.raise)
	} else {
		c.raising.Reset(scarceTime)
	}
	for len(c.held) > fewer {
		oldest := c.longest(noticed)
		if oldest == nil {
			return
		}
		oldest.drop()
	}
}

// raise lets as many connections be held as before the system ran out of descriptors.
func (c *connections) raise() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = c.most
	c.changed.Broadcast()
}

// scarceTime is the time for which the limit on connections stays lowered after the system ran out of descriptors. If
// it runs out again, the time begins anew.
const scarceTime = 10 * time.Second

// scarcePause is the time before the limit is lowered again, since the descriptors of connections become free a little
// after they were closed.
const scarcePause = time.Second

// Connections that were closed have scarceWait, so many times, to become descriptors for what a request opens.
const (
	scarceTries = 10
	scarceWait  = 20 * time.Millisecond
)

// withDescriptors does what opens files for the request of a context. If there are no descriptors, it ends connections
// that have none of the authenticated requests, and tries again. It takes no request, which checks of tokens would keep
// for as long as anything that the request has begun, such as a session: its header may be long.
func withDescriptors(ctx context.Context, do func() error) error {
	err := do()
	for range scarceTries {
		one := connectionIn(ctx)
		if !isScarce(err) || one == nil {
			return err
		}
		one.of.scarce(one)
		select {
		case <-time.After(scarceWait):
		case <-ctx.Done():
			return err
		}
		err = do()
	}
	return err
}

// sendBuffer is the number of bytes of an answer that the operating system holds until the client takes them. Linux
// wakes a writer only when a third of them is free, and by default holds megabytes, which a slow reader does not take
// within [Limits.Stall].
const sendBuffer = 128 << 10

// longest returns the connection that has had no authenticated request for longest, except one, or nil if all have
// one. Those that net/http has closed come first. The caller must hold c.mu.
func (c *connections) longest(except *connection) (found *connection) {
	for one := range c.held {
		if one == except {
			continue
		}
		if !one.running && (found == nil || one.lingers || !found.lingers && one.since.Before(found.since)) {
			found = one
		}
	}
	return found
}

// dropRefused ends the connections that have had no authenticated request since a time.
func (c *connections) dropRefused(since time.Time) {
	c.dropThose(func(one *connection) bool { return !one.running && !one.since.After(since) })
}

// dropAll ends all connections.
func (c *connections) dropAll() { c.dropThose(func(*connection) bool { return true }) }

func (c *connections) dropThose(which func(*connection) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for one := range c.held {
		if which(one) {
			one.drop()
		}
	}
}

// Close implements [net.Listener].
func (c *connections) Close() error {
	c.mu.Lock()
	c.closed = true
	if c.raising != nil {
		c.raising.Stop()
	}
	c.mu.Unlock()
	c.changed.Broadcast()
	return c.Listener.Close()
}

// follow is told the states of connections by net/http.
func (c *connections) follow(of net.Conn, state http.ConnState) {
	one := of.(*connection) // which Accept has returned
	if state == http.StateIdle {
		defer one.takePlace() // for a request that was read with the one before; otherwise, net/http reads next
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateActive:
		one.expireIn(c.refusal) // unless its request turns out to be authenticated
	case http.StateIdle:
		one.isKnown.Store(one.running)
		one.socket.idle()
		one.header = header{}
		one.expireIn(0)
		one.settle()
		if one.last {
			one.drop()
		}
	}
}

type connectionKey struct{}

// inContext puts a connection into the context of its requests, for [connectionFor].
func (c *connections) inContext(ctx context.Context, of net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, of)
}

// connectionFor returns the connection of a request. Without one it returns nil, which has all methods of requests.
func connectionFor(r *http.Request) *connection { return connectionIn(r.Context()) }

func connectionIn(ctx context.Context) *connection {
	one, _ := ctx.Value(connectionKey{}).(*connection)
	return one
}

// connection is one that is held. It carries one request at a time.
type connection struct {
	net.Conn // what net/http reads and writes: the socket, or TLS over it
	socket   *socket
	tls      *tls.Conn // nil for a connection without TLS
	of       *connections
	silent   atomic.Bool // nothing more is read, and net/http's own refusals are not written
	header   header      // only Read uses it while a request is read
	placed   atomic.Bool // see takePlace
	isKnown  atomic.Bool // its last request was authenticated
	discards atomic.Bool // it reads the rest of a refused body

	// The lock of connections guards what follows.
	since    time.Time   // when it was accepted, or when it last had an authenticated request
	running  bool        // it has an authenticated request, and is dropped only when that ends
	answered func()      // to be called when the connection is idle, since the handler has ended; nil before
	last     bool        // it takes no request after the one that it carries
	expiry   *time.Timer // drops it; nil if none is set
	closed   bool
	lingers  bool // net/http has closed it, and its client may still read

}

// handles notes that a handler answers, until the connection is idle. It returns false if the connection has been
// dropped: net/http may have read more requests from it by then.
func (c *connection) handles() bool {
	if c == nil {
		return true
	}
	c.socket.handled.Store(true)
	if !c.leavePlace() {
		runtime.Gosched() // a connection that has sent many requests would go on for 10 ms before it is another's turn
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	return !c.closed
}

// encryption returns what TLS has agreed on, as net/http does for its own connections, or nil.
func (c *connection) encryption() *tls.ConnectionState {
	if c == nil || c.tls == nil {
		return nil
	}
	state := c.tls.ConnectionState()
	return &state
}

// takesNoMore has the connection end with the request that it carries. It returns false if ctx, which ends with that
// request, has ended: the connection may carry another client's request by then.
func (c *connection) takesNoMore(ctx context.Context) bool {
	if c == nil {
		return true
	}
	c.of.mu.Lock() // so that the request does not end meanwhile
	defer c.of.mu.Unlock()
	c.last = c.last || ctx.Err() == nil
	return c.last
}

// endIn ends the connection after a time.
func (c *connection) endIn(wait time.Duration) {
	if c != nil {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.expireIn(wait)
	}
}

// isGone reports whether the client has disconnected, or will send no more.
func (c *connection) isGone() bool {
	if c == nil {
		return false
	}
	return isShut(c.socket.Conn)
}

// begin counts an authenticated request until end is called and the connection is idle, since the rest of its body and
// of its answer are still on their way when its handler has ended. It calls left then. Calling end again does nothing.
// Short records of the request wait as of says.
func (c *connection) begin(of *delays, left func()) (end func()) {
	if c == nil {
		return sync.OnceFunc(left)
	}
	c.socket.delays.Store(of)
	c.isKnown.Store(true)
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.running = true
	c.expireIn(0)
	return sync.OnceFunc(func() {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.answered = left
		if c.closed {
			c.settle()
		}
	})
}

// lingerTime is the time that a client has to read an answer before its connection is reset. net/http gives as much.
const lingerTime = 500 * time.Millisecond

// settle ends the request that has been answered. The caller must hold the lock of connections.
func (c *connection) settle() {
	if c.answered == nil {
		return
	}
	c.answered()
	c.running, c.answered = false, nil
	c.socket.delays.Store(nil)
	c.since = time.Now()
	c.of.changed.Broadcast()
}

// expireIn drops the connection after a time, and not after an earlier one. Zero sets no time. The caller must hold the
// lock of connections.
func (c *connection) expireIn(wait time.Duration) {
	if c.expiry != nil {
		c.expiry.Stop()
		c.expiry = nil
	}
	if wait == 0 || c.closed {
		return
	}
	var expiry *time.Timer
	expiry = time.AfterFunc(wait, func() {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		if c.expiry == expiry {
			c.drop()
		}
	})
	c.expiry = expiry
}

// drop ends the connection. The caller must hold the lock of connections.
func (c *connection) drop() {
	c.forget()
	_ = c.socket.Close() // net/http notices
}

// forget makes room for another connection. The caller must hold the lock of connections.
func (c *connection) forget() {
	c.closed = true
	c.expireIn(0)
	delete(c.of.held, c)
	c.settle()
	c.of.changed.Broadcast()
}

// Write implements [net.Conn].
func (c *connection) Write(p []byte) (int, error) {
	c.leavePlace()
	if c.socket.handled.Load() { // a handler's answer may read like one of net/http
		return c.Conn.Write(p)
	}
	if c.silent.Load() {
		return len(p), nil // the request has been refused
	}
	refusal, ok := asProblem(p)
	if !ok {
		return c.Conn.Write(p)
	}
	_, err := c.Conn.Write(refusal)
	return len(p), err // net/http closes the connection
}

// Close implements [net.Conn]. Only clients with an authenticated request get TLS's notice of the end, since writing it
// may wait for the client. The connection is held meanwhile, so that it can be dropped. So is one whose request has a
// body that is not read: the system would reset it, and take the answer away from a client that still sends.
func (c *connection) Close() error {
	c.leavePlace()
	c.of.mu.Lock()
	conn := net.Conn(c.socket)
	if c.running {
		conn = c.Conn
	}
	if t, ok := c.socket.Conn.(*net.TCPConn); ok && c.silent.Load() && !c.closed && !c.lingers {
		defer c.of.mu.Unlock()
		c.lingers = true
		c.settle()
		c.expireIn(min(lingerTime, c.of.refusal))
		return t.CloseWrite()
	}
	c.of.mu.Unlock()
	err := conn.Close()
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.forget()
	return err
}

package server

import (
	"crypto/tls"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// crypto/tls keeps each message of a handshake until it is whole, and then holds up to thirty times its length: clients
// choose these lengths before they have a token. So there are bounds on the bytes that a client sends.
const (
	helloBytes     = 8 << 10  // until its first message is whole; clients send 2 KiB, and more with long session tickets
	handshakeBytes = 16 << 10 // until the end of the handshake; a client may be asked for a second first message
	// The same if clients may send certificates, which their session tickets repeat.
	helloWithCertificates     = 16 << 10
	handshakeWithCertificates = 32 << 10

	// recordBytes is the bound between two parts of a request: about twice the longest record, of 16 KiB and 261 bytes.
	recordBytes = 40 << 10
	// overheadBytes is added to the length of a header: it may come in several records, but not in thousands of records
	// of one byte, since decrypting these takes as long as a hundred requests.
	overheadBytes = 64 << 10
)

// errShortRecords means that a client without an authenticated request has sent many short records.
var errShortRecords = errors.New("server: many short records")

// errTooMuchTLS means that a client has sent too many bytes that are no part of a request.
var errTooMuchTLS = errors.New("server: the messages of TLS are too long")

// limits are how many bytes a client sends at most over an encrypted connection.
type limits struct {
	hello     int64 // until its first message is whole
	handshake int64 // until the end of the handshake
	header    int64 // for a request until its handler is called
}

// limitsOf returns the limits of connections with a configuration, and with headers of some length.
func limitsOf(config *tls.Config, headerBytes int) limits {
	l := limits{helloBytes, handshakeBytes, int64(headerBytes) + overheadBytes}
	if config.ClientAuth != tls.NoClientCert || config.GetConfigForClient != nil {
		l.hello, l.handshake = helloWithCertificates, handshakeWithCertificates
	}
	return l
}

// socket is the network connection of a client, with or without TLS over it.
type socket struct {
	stallConn
	limits *limits // nil without TLS
	gone   chan struct{}
	shut   sync.Once // closes gone

	// delays are those of the tenant whose request it carries; nil without an authenticated request.
	delays atomic.Pointer[delays]

	greeted     atomic.Bool  // the first message of the handshake has arrived
	established atomic.Bool  // the handshake has ended
	handled     atomic.Bool  // a handler answers a request
	ahead       atomic.Int64 // bytes that were read since a part of a request was, or since the beginning
	request     atomic.Int64 // bytes that were read for a request whose handler has not been called
	short       atomic.Int64 // bytes by which the records of a request are shorter than fair ones
	undelivered atomic.Int64 // records, less those of which data was read
	records     records      // only Read uses it
}

// Read implements [net.Conn].
func (s *socket) Read(p []byte) (int, error) {
	if s.limits == nil {
		return s.stallConn.Read(p)
	}
	n, err := s.stallConn.Read(p[:min(len(p), s.records.left+aheadBytes)]) // crypto/tls may ask for 64 KiB
	if !s.mayDecrypt(p[:n]) {
		return 0, errShortRecords
	}
	limit := int64(recordBytes)
	switch {
	case !s.greeted.Load():
		limit = s.limits.hello
	case !s.established.Load():
		limit = s.limits.handshake
	}
	isLong := s.ahead.Add(int64(n)) > limit
	if !s.handled.Load() {
		isLong = s.request.Add(int64(n)) > s.limits.header || isLong
	}
	if isLong {
		return 0, errors.Join(errTooMuchTLS, s.Close())
	}
	return n, err
}

// mayDecrypt counts the records that begin in a part. If there are many short ones, or many without data, it waits, or
// returns false without an authenticated request.
func (s *socket) mayDecrypt(part []byte) bool {
	begun, by := s.records.add(part)
	short := max(s.short.Load()+int64(by), 0)
	s.short.Store(short)
	empty := max(s.undelivered.Add(int64(begun))-freeRecords, 0) // as many may have data, and wait to be decrypted
	if short <= freeRecords*fairRecord && empty == 0 {
		return true
	}
	of := s.delays.Load()
	if of == nil {
		return false
	}
	s.undelivered.Add(-empty)
	owed := of.of(begun+int(empty)*(dataless-1), time.Now())
	if owed < leastDelay {
		return true
	}
	wait := time.NewTimer(owed)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-s.gone:
	}
	return true
}

// Close implements [net.Conn].
func (s *socket) Close() error {
	s.shut.Do(func() { close(s.gone) })
	return s.stallConn.Close()
}

// idle notes that the next request begins.
func (s *socket) idle() {
	s.handled.Store(false)
	s.request.Store(0)
	s.short.Store(0)
}

// delivered notes that a part of a request has arrived: crypto/tls then keeps no part of another message, since it
// accepts nothing else until a message is whole.
func (s *socket) delivered() {
	s.ahead.Store(0)
	s.undelivered.Store(max(s.undelivered.Load()-1, 0))
}

// encrypting returns a configuration that has sockets note the first message of their handshake, and with which clients
// cannot choose HTTP/2. RATIONALE.md has the reason.
func encrypting(config *tls.Config) *tls.Config {
	chosen := config.GetConfigForClient
	config = onlyHTTP1(config)
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if one, ok := hello.Conn.(*socket); ok {
			one.greeted.Store(true)
		}
		if chosen == nil {
			return nil, nil
		}
		config, err := chosen(hello)
		if config != nil {
			config = onlyHTTP1(config)
		}
		return config, err
	}
	return config
}

func onlyHTTP1(config *tls.Config) *tls.Config {
	config = config.Clone()
	config.NextProtos = []string{"http/1.1"}
	return config
}

package server

import (
	"crypto/tls"
	"errors"
	"math"
	"sync/atomic"
)

// crypto/tls keeps what it has read of a message until the message is whole, and makes thirty times its length of the
// first one, and half as much of a second one that it asks for. So clients send at most so many bytes in a handshake,
// and later before a part of a request arrives. crypto/tls reads up to two records ahead.
const (
	helloBytes    = 8 << 10  // until the first message is whole; clients send 2 KiB, and more with long session tickets
	greetingBytes = 16 << 10 // of a handshake
	recordBytes   = 40 << 10
	// The same of clients that may send certificates: their session tickets have these, too.
	helloWithCertificates    = 16 << 10
	greetingWithCertificates = 32 << 10
	// overheadBytes is the part of what a client sends for a header, with the handshake, that is no part of the header:
	// records of one byte take forty times their length, and thousands of them as long as a hundred requests.
	overheadBytes = 64 << 10
)

// errLongHandshake means that a client has sent too much that is no part of a request.
var errLongHandshake = errors.New("server: the messages of TLS are too long")

// socket is the connection to a client, over which others are encrypted.
type socket struct {
	stallConn

	encrypted   bool
	hello       int64        // the maximum of ahead until the first message is whole
	greeting    int64        // the maximum of ahead in a handshake
	header      int64        // the maximum of request
	greeted     atomic.Bool  // the first message of the handshake has arrived
	established atomic.Bool  // the handshake has ended
	ahead       atomic.Int64 // bytes that were read since a part of a request was, or since the beginning
	request     atomic.Int64 // bytes that were read for a header; negative while a handler reads a body
}

// Read implements [net.Conn].
func (s *socket) Read(p []byte) (int, error) {
	n, err := s.stallConn.Read(p)
	if s.encrypted {
		limit := int64(recordBytes)
		switch {
		case !s.greeted.Load():
			limit = s.hello
		case !s.established.Load():
			limit = s.greeting
		}
		if s.ahead.Add(int64(n)) > limit || s.request.Add(int64(n)) > s.header {
			return 0, errors.Join(errLongHandshake, s.Close())
		}
	}
	return n, err
}

// handled notes whether a handler reads from now on, or net/http reads the next header.
func (s *socket) handled(isHandled bool) {
	if isHandled {
		s.request.Store(math.MinInt64 / 2)
	} else {
		s.request.Store(0)
	}
}

// delivered notes that a part of a request has arrived: crypto/tls then keeps no part of another message, since it
// accepts nothing else until a message is whole.
func (s *socket) delivered() { s.ahead.Store(0) }

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

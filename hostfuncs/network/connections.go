package network

import (
	"context"
	"fmt"
	"net/http"
	"slices"
)

// maxIdleConnections is how many connections a session keeps for its later requests.
const maxIdleConnections = MaxInFlight

// roundTrip sends a request on a connection that is idle or new. The body of the answer must
// be closed. Requests with another reach share no connections: an idle one goes where a grant
// for another request let it go.
func (s *Session) roundTrip(ctx context.Context, l *location, request *http.Request) (*http.Response, error) {
	to, reached := s.client.permission.reach(l, request.Method)
	key := fmt.Sprintf("%s %s %d %s", l.scheme, l.host, l.port, reached)
	for {
		c := s.takeIdle(key)
		if c == nil {
			return s.roundTripNew(ctx, l, to, key, request)
		}
		answer, err := c.roundTrip(request, s.keepIdle)
		// A server may close a connection while a request is on its way. It is sent again only
		// where it may arrive twice.
		if err == nil || c.received > 0 || ctx.Err() != nil || !isSafe(request.Method) {
			return answer, err
		}
		if err := rewind(request); err != nil {
			return nil, err
		}
	}
}

func (s *Session) roundTripNew(ctx context.Context, l *location, to *reach, key string, request *http.Request) (*http.Response, error) {
	c, err := s.client.dial(ctx, l, to)
	if err != nil {
		return nil, err
	}
	c.key = key
	return c.roundTrip(request, s.keepIdle)
}

// isSafe reports whether a method asks for nothing to be changed (RFC 9110, section 9.2.1).
func isSafe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// takeIdle returns a connection on which the server has been silent, or nil.
func (s *Session) takeIdle(key string) *connection {
	for {
		c := s.removeIdle(key)
		if c == nil || c.wake() {
			return c
		}
	}
}

func (s *Session) removeIdle(key string) *connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range slices.Backward(s.idle) {
		if c.key == key {
			s.idle = slices.Delete(s.idle, i, i+1)
			return c
		}
	}
	return nil
}

// keepIdle is called during an exchange, so that Close has yet to close what it keeps.
func (s *Session) keepIdle(c *connection) {
	c.rest()
	s.mu.Lock()
	s.idle = append(s.idle, c)
	var oldest *connection
	if len(s.idle) > maxIdleConnections {
		oldest = s.idle[0]
		s.idle = slices.Delete(s.idle, 0, 1)
	}
	s.mu.Unlock()
	if oldest != nil {
		oldest.close()
	}
}

// closeIdle closes the connections that are kept.
func (s *Session) closeIdle() {
	s.mu.Lock()
	idle := s.idle
	s.idle = nil
	s.mu.Unlock()
	for _, c := range idle {
		c.close()
	}
}

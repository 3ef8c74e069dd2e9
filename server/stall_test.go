package server

import (
	"crypto/tls"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAttackStallsOnce: a client over TLS reads nothing. When the time to take a piece has passed, crypto/tls
// tells it so before it closes the connection, which must not take the same time again.
func TestAttackStallsOnce(t *testing.T) {
	l, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	defer l.Close()
	client := make(chan error, 1)
	go func() {
		raw, err := net.Dial("tcp", l.Addr().String())
		if err == nil {
			t.Cleanup(func() { raw.Close() })
			err = tls.Client(raw, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(t.Context())
		}
		client <- err
	}()
	accepted, err := l.Accept()
	require.NoError(t, err)
	slow := &stalling{Conn: accepted}
	c := tls.Server(stallConn{slow, time.Hour}, certificate(t))
	require.NoError(t, c.HandshakeContext(t.Context()))
	require.NoError(t, <-client)
	slow.stalls = true
	_, err = c.Write([]byte("an answer"))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	_ = c.Close()
	assert.Equal(t, 1, slow.times)
}

// stalling is a connection whose writes take as long as they may, once it stalls.
type stalling struct {
	net.Conn
	stalls bool
	times  int
}

func (c *stalling) Write(p []byte) (int, error) {
	if !c.stalls {
		return c.Conn.Write(p)
	}
	c.times++
	return 0, os.ErrDeadlineExceeded
}

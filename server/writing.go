package server

import (
	"net"
	"time"
)

// piece is the number of bytes of an answer that a client has to take within [Limits.Stall].
const piece = 16 << 10

// inPieces writes with a time limit for each piece, so that a client that reads slowly and steadily gets all of a long
// answer.
func inPieces(p []byte, write func([]byte) (int, error)) (n int, err error) {
	for {
		written, err := write(p[n:min(n+piece, len(p))])
		n += written
		if err != nil || n >= len(p) {
			return n, err
		}
	}
}

// stallConn gives the client a limited time to take each piece. A write that fails closes it.
type stallConn struct {
	net.Conn
	stall time.Duration
}

// Write implements [net.Conn].
func (c stallConn) Write(p []byte) (int, error) {
	n, err := inPieces(p, func(p []byte) (int, error) {
		if err := c.Conn.SetWriteDeadline(time.Now().Add(c.stall)); err != nil {
			return 0, err
		}
		return c.Conn.Write(p)
	})
	if err != nil {
		_ = c.Conn.Close() // crypto/tls would write that it closes the connection, and wait as long again
	}
	return n, err
}

package server

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestVanishedClients: the system ends a connection whose client has vanished within two minutes, whether data was sent
// or not. The control is the system's default, for another connection.
func TestVanishedClients(t *testing.T) {
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	held := newConnections(listener, nil, Limits{Connections: 1, Refusal: time.Minute, Stall: 30 * time.Second})
	defer held.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	accepted, err := held.Accept()
	require.NoError(t, err)
	defer accepted.Close()
	for name, test := range map[string]struct {
		of   net.Conn
		want [2]int
	}{"held": {accepted.(*connection).socket.Conn, [2]int{120_000, 3}}, "control": {client, [2]int{0, 9}}} {
		raw, err := test.of.(*net.TCPConn).SyscallConn()
		require.NoError(t, err)
		var got [2]int
		require.NoError(t, raw.Control(func(descriptor uintptr) {
			for n, option := range []int{unix.TCP_USER_TIMEOUT, unix.TCP_KEEPCNT} {
				got[n], err = unix.GetsockoptInt(int(descriptor), unix.IPPROTO_TCP, option)
				assert.NoError(t, err)
			}
		}))
		assert.Equal(t, test.want, got, name)
	}
}

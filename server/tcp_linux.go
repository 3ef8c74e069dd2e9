package server

import (
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// endUnacknowledged ends a connection whose client has not acknowledged data for a time: keep-alive probes wait until
// it has, and retransmissions take a quarter of an hour.
func endUnacknowledged(c syscall.Conn, wait time.Duration) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(descriptor uintptr) {
		err = unix.SetsockoptInt(int(descriptor), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(wait.Milliseconds()))
	})
	return errors.Join(failed, err)
}

// isShut reports whether the client has closed a connection, or will send no more over it.
func isShut(c net.Conn) (shut bool) {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(descriptor uintptr) { // fails if the server has closed it
		asked := []unix.PollFd{{Fd: int32(descriptor), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(asked, 0)
		shut = err == nil && n > 0
	})
	return shut
}

// isReset reports whether a connection has ended in both directions.
func isReset(descriptor uintptr) bool {
	asked := []unix.PollFd{{Fd: int32(descriptor)}} // which asks for no more than that
	n, err := unix.Poll(asked, 0)
	return err == nil && n > 0
}

package server

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

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

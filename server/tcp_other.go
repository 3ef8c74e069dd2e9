//go:build !linux

package server

import (
	"net"
	"syscall"
	"time"
)

// isShut cannot tell on other systems whether the client has closed a connection. net/http does, unless the client has
// sent something after its request.
func isShut(net.Conn) bool { return false }

// endUnacknowledged does nothing: the system decides how long data is sent again.
func endUnacknowledged(syscall.Conn, time.Duration) error { return nil }

// isReset reports that it is not known whether a connection has ended in both directions.
func isReset(uintptr) bool { return false }

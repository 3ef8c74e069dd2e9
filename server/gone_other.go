//go:build !linux

package server

import "net"

// isShut cannot tell on other systems whether the client has closed a connection. net/http does, unless the client has
// sent something after its request.
func isShut(net.Conn) bool { return false }

package wasi

import "github.com/caisson-run/caisson/tool"

// notSocket implements the functions that take a socket. No descriptor is one.
var notSocket = onDescriptor(func(*call, *descriptor) error { return ENOTSOCK })

// denySocket implements a function by which a guest would use the network without its permissions. It
// leaves a receipt.
func denySocket(name string) handler {
	return func(c *call) error {
		c.system.Sockets.Deny(tool.Denial{
			Permission: "network", Value: name,
			Rule: "tools have no sockets: the host sends requests for them (caisson:net@1)",
		}, nil)
		return EPERM // as for files
	}
}

var socketFunctions = []function{
	{"sock_accept", "iii", notSocket},
	{"sock_recv", "iiiiii", notSocket},
	{"sock_send", "iiiii", notSocket},
	{"sock_shutdown", "ii", notSocket},
}

// wasmEdgeFunctions are those by which WasmEdge extends preview 1. Programs import some of them with
// other types, depending on their version of WasmEdge; see [wasm.Import.HostName].
var wasmEdgeFunctions = []function{
	{"sock_open", "iii", denySocket("sock_open")},
	{"sock_getaddrinfo", "iiiiiiii", denySocket("sock_getaddrinfo")},
	{"sock_bind", "iii", notSocket},
	{"sock_connect", "iii", notSocket},
	{"sock_listen", "ii", notSocket},
	{"sock_accept/2", "ii", notSocket},
	{"sock_recv_from", "iiiiiiii", notSocket},
	{"sock_recv_from/7", "iiiiiii", notSocket},
	{"sock_send_to", "iiiiiii", notSocket},
	{"sock_getlocaladdr", "iiii", notSocket},
	{"sock_getlocaladdr/3", "iii", notSocket},
	{"sock_getpeeraddr", "iiii", notSocket},
	{"sock_getpeeraddr/3", "iii", notSocket},
	{"sock_getsockopt", "iiiii", notSocket},
	{"sock_setsockopt", "iiiii", notSocket},
}

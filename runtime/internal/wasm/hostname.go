package wasm

import "strconv"

// wasmEdgeParameters are the functions of WasmEdge's sockets whose types differ between its versions, with
// the number of parameters in the version that a host offers under the name itself.
var wasmEdgeParameters = map[string]int{"sock_accept": 3, "sock_recv_from": 8, "sock_getlocaladdr": 4,
	"sock_getpeeraddr": 4}

// HostName returns the name under which a host provides the import, and by which [Rewrite] replaces the name. It
// differs for a function that has had several types: a host module has one function for each name. Then it is the name,
// a slash and the number of parameters, such as "sock_accept/2".
func (i Import) HostName() string {
	usual, varies := wasmEdgeParameters[i.Name]
	if !varies || i.Kind != ExternFunction || i.Module != "wasi_snapshot_preview1" || len(i.Function.Params) == usual {
		return i.Name
	}
	return i.Name + "/" + strconv.Itoa(len(i.Function.Params))
}

//go:build wasip1

package caisson

import "unsafe"

//go:wasmimport caisson:io@1 read
func importedRead(buffer unsafe.Pointer, length uint32) int32

//go:wasmimport caisson:net@1 request
func importedRequest(request unsafe.Pointer, length uint32, body unsafe.Pointer, bodyLength uint32) uint64

//go:wasmimport caisson:net@1 send
func importedSend(request unsafe.Pointer, length uint32, body unsafe.Pointer, bodyLength uint32) uint64

//go:wasmimport caisson:net@1 receive
func importedReceive(request unsafe.Pointer, length uint32) uint64

//go:wasmimport caisson:secrets@1 exists
func importedExists(request unsafe.Pointer, length uint32) uint64

//go:wasmimport caisson:tools@1 call
func importedCall(request unsafe.Pointer, length uint32) uint64

//go:wasmimport caisson:stream@1 emit
func importedEmit(request unsafe.Pointer, length uint32) uint64

//go:wasmimport caisson:context@1 get
func importedGet(request unsafe.Pointer, length uint32) uint64

// Each host function has its own Go function, so that the linker drops unused imports: a module may
// only import what its manifest requests.

func netRequest() hostFunction    { return withBody("caisson:net@1.request", importedRequest) }
func netSend() hostFunction       { return withBody("caisson:net@1.send", importedSend) }
func netReceive() hostFunction    { return plain("caisson:net@1.receive", importedReceive) }
func secretsExists() hostFunction { return plain("caisson:secrets@1.exists", importedExists) }
func toolsCall() hostFunction     { return plain("caisson:tools@1.call", importedCall) }
func streamEmit() hostFunction    { return plain("caisson:stream@1.emit", importedEmit) }
func contextGet() hostFunction    { return plain("caisson:context@1.get", importedGet) }

// plain is a function that takes only a request.
func plain(name string, imported func(unsafe.Pointer, uint32) uint64) hostFunction {
	return hostFunction{name, func(request, _ []byte) (uint64, error) { return imported(span(request)), nil }, read}
}

// withBody is a function that takes a request and a body.
func withBody(name string, imported func(unsafe.Pointer, uint32, unsafe.Pointer, uint32) uint64) hostFunction {
	return hostFunction{name, func(request, body []byte) (uint64, error) {
		p, n := span(request)
		b, bn := span(body)
		return imported(p, n, b, bn), nil
	}, read}
}

func read(buffer []byte) int { return int(importedRead(span(buffer))) }

// span returns the address and the length of bytes in the module's memory.
func span(bytes []byte) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.SliceData(bytes)), uint32(len(bytes))
}

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

// Each function of the host is a value of its own: the linker keeps an import only where
// the program can reach it, and a module may import only what its manifest asks for.

func netRequest() hostFunction {
	return hostFunction{"caisson:net@1.request", func(request, body []byte) (uint64, error) {
		p, n := span(request)
		b, bn := span(body)
		return importedRequest(p, n, b, bn), nil
	}, read}
}

func netSend() hostFunction {
	return hostFunction{"caisson:net@1.send", func(request, body []byte) (uint64, error) {
		p, n := span(request)
		b, bn := span(body)
		return importedSend(p, n, b, bn), nil
	}, read}
}

func netReceive() hostFunction {
	return hostFunction{"caisson:net@1.receive", func(request, _ []byte) (uint64, error) {
		p, n := span(request)
		return importedReceive(p, n), nil
	}, read}
}

func secretsExists() hostFunction {
	return hostFunction{"caisson:secrets@1.exists", func(request, _ []byte) (uint64, error) {
		p, n := span(request)
		return importedExists(p, n), nil
	}, read}
}

func toolsCall() hostFunction {
	return hostFunction{"caisson:tools@1.call", func(request, _ []byte) (uint64, error) {
		p, n := span(request)
		return importedCall(p, n), nil
	}, read}
}

func streamEmit() hostFunction {
	return hostFunction{"caisson:stream@1.emit", func(request, _ []byte) (uint64, error) {
		p, n := span(request)
		return importedEmit(p, n), nil
	}, read}
}

func contextGet() hostFunction {
	return hostFunction{"caisson:context@1.get", func(request, _ []byte) (uint64, error) {
		p, n := span(request)
		return importedGet(p, n), nil
	}, read}
}

func read(buffer []byte) int {
	p, n := span(buffer)
	return int(importedRead(p, n))
}

// span returns where bytes stand in the module's memory, and how many they are.
func span(bytes []byte) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.SliceData(bytes)), uint32(len(bytes))
}

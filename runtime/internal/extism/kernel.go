// Package extism runs Extism plug-ins: it has the functions that a plug-in imports from extism:host/env.
//
// Most of it is the kernel, a small WebAssembly module of our own (kernel/kernel.c) that has one instance for each
// instance of a plug-in. It holds the blocks of memory through which the two sides exchange bytes, since a plug-in
// moves eight bytes a call and calls of the host are slow. The kernel imports the functions of this package for work
// that only the host can do. They find the state of their call in a [Session] in the call's context, and keep none
// themselves.
package extism

import (
	_ "embed"
	"errors"
	"strings"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
)

// Module is the module of the kernel's functions in the imports of plug-ins.
const Module = "extism:host/env"

// hostModule is the module of the host's functions in the imports of the kernel. Plug-ins cannot
// import it, since it is not offered to them.
const hostModule = "caisson:extism@1"

//go:embed kernel/kernel.wasm
var kernelModule []byte

// Kernel returns the kernel for an engine, with more functions that plug-ins may import.
func Kernel(more []hostfuncs.Function) *engine.Kernel {
	return &engine.Kernel{
		Module: Module, Source: kernelModule, Functions: functions(), Beside: more, Finish: finish(),
		Exits: func(err error) bool {
			_, exits := errors.AsType[*wasi.ExitError](err)
			return exits
		},
	}
}

// offered are the names of the functions that plug-ins may import, with the types of their parameters and
// results: l is an i64, which offsets and lengths are, and i an i32.
var offered = []struct{ params, results, names string }{
	{"l", "l", "alloc length length_unsafe load_u64 input_load_u64 config_get var_get"},
	{"l", "", "free error_set log_trace log_debug log_info log_warn log_error"},
	{"", "l", "memory_bytes input_offset input_length output_offset output_length error_get http_headers"},
	{"l", "i", "load_u8 input_load_u8"},
	{"li", "", "store_u8"},
	{"ll", "", "store_u64 input_set output_set var_set"},
	{"", "", "reset"},
	{"ll", "l", "http_request"},
	{"", "i", "http_status_code get_log_level"},
}

// Offered returns the functions that plug-ins may import. They are the kernel's, so they have no
// Call.
func Offered() []hostfuncs.Function {
	var all []hostfuncs.Function
	for _, f := range offered {
		for name := range strings.FieldsSeq(f.names) {
			all = append(all,
				hostfuncs.Function{Module: Module, Name: name, Params: valueTypes(f.params), Results: valueTypes(f.results)})
		}
	}
	return all
}

func valueTypes(letters string) []hostfuncs.ValueType {
	var types []hostfuncs.ValueType
	for _, letter := range letters {
		if letter == 'l' {
			types = append(types, hostfuncs.I64)
		} else {
			types = append(types, hostfuncs.I32)
		}
	}
	return types
}

//go:build wasip1

// Command go is the plug-in in Go, written with Extism's PDK. It is a separate module, so that the PDK is not a
// dependency of Caisson.
package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/extism/go-pdk"
)

func main() {}

// fail reports an error and returns the code of a call that failed.
func fail(format string, values ...any) int32 {
	pdk.SetErrorString(fmt.Sprintf(format, values...))
	return 1
}

//go:wasmexport echo
func echo() int32 {
	pdk.Output(pdk.Input())
	return 0
}

//go:wasmexport reverse
func reverse() int32 {
	characters := []rune(pdk.InputString())
	slices.Reverse(characters)
	pdk.OutputString(string(characters))
	return 0
}

//go:wasmexport count_vowels
func countVowels() int32 {
	count := 0
	for _, b := range pdk.Input() {
		if strings.IndexByte("aeiouAEIOU", b) >= 0 {
			count++
		}
	}
	if err := pdk.OutputJSON(map[string]int{"count": count}); err != nil {
		return fail("%v", err)
	}
	return 0
}

var calls int64 // in the memory of the instance

//go:wasmexport count_memory
func countMemory() int32 {
	calls++
	pdk.OutputString(strconv.FormatInt(calls, 10))
	return 0
}

//go:wasmexport count_var
func countVar() int32 {
	count, _ := strconv.Atoi(string(pdk.GetVar("calls")))
	count++
	pdk.SetVar("calls", []byte(strconv.Itoa(count)))
	pdk.OutputString(strconv.Itoa(count))
	return 0
}

//go:wasmexport config
func config() int32 {
	value, ok := pdk.GetConfig(pdk.InputString())
	if !ok {
		return fail("no value for %s", pdk.InputString())
	}
	pdk.OutputString(value)
	return 0
}

//go:wasmexport log_levels
func logLevels() int32 {
	for _, level := range []pdk.LogLevel{pdk.LogTrace, pdk.LogDebug, pdk.LogInfo, pdk.LogWarn, pdk.LogError} {
		pdk.Log(level, pdk.InputString())
	}
	pdk.OutputString("logged")
	return 0
}

//go:wasmexport fail
func failed() int32 {
	pdk.SetErrorString(pdk.InputString())
	return 7
}

//go:wasmexport trap
func trap() int32 {
	panic(pdk.InputString())
}

//go:wasmexport get
func get() int32 {
	response := pdk.NewHTTPRequest(pdk.MethodGet, pdk.InputString()).Send()
	pdk.OutputString(fmt.Sprintf("%d %s", response.Status(), response.Body()))
	return 0
}

// allocate makes as many blocks in the host's memory as the input says, and frees every other one.
//
//go:wasmexport allocate
func allocate() int32 {
	blocks, err := strconv.Atoi(pdk.InputString())
	if err != nil {
		return fail("not a number")
	}
	sum := uint64(0)
	for i := range blocks {
		block := pdk.Allocate(1 + i*7919%1000)
		written := []byte{byte(i)}
		block.Store(written)
		read := []byte{0}
		block.Load(read)
		if found := pdk.FindMemory(block.Offset()); found.Length() != block.Length() || read[0] != written[0] {
			return fail("block %d has %d bytes", i, found.Length())
		}
		sum += block.Length() + uint64(read[0])
		if i%2 == 1 {
			block.Free()
		}
	}
	pdk.OutputString(strconv.FormatUint(sum, 10))
	return 0
}

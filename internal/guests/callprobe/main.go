//go:build wasip1

// Command callprobe is the guest of the tests of tools that call tools. With an argument, it calls
// the tool of that name before it reads its input.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/caisson-run/caisson/internal/guests/script"
	caisson "github.com/caisson-run/caisson/sdk/go"
)

type step struct {
	Do        string          `json:"do"`        // call, flood, raw, echo, log, burn, spin or fail
	Name      string          `json:"name"`      // of the tool
	Arguments json.RawMessage `json:"arguments"` // for the tool
	Text      string          `json:"text"`      // for raw, the request; for echo and log, what to say
	Count     int             `json:"count"`     // of calls, or of rounds to burn
}

// answer is the result of a call or a failure.
type answer struct {
	*caisson.ToolResult
	Failure *script.Failure `json:",omitempty"`
}

func main() {
	var done []any
	if len(os.Args) > 1 {
		done = append(done, call(os.Args[1], nil))
	}
	script.Main[step](done...)
}

func (s step) Run() any {
	switch s.Do {
	case "call":
		return call(s.Name, s.Arguments)
	case "flood":
		ends := map[string]int{}
		for range s.Count {
			ends[call(s.Name, s.Arguments).end()]++
		}
		return ends
	case "raw":
		return raw(s.Text)
	case "echo":
		return s.Text
	case "log":
		fmt.Fprint(os.Stderr, s.Text)
		return nil
	case "burn":
		return burn(s.Count)
	case "spin":
		for {
			burned = burn(1000)
		}
	case "fail":
		script.Fail(errors.New(strings.TrimSpace("as asked " + s.Name)))
	}
	script.Fail(fmt.Errorf("cannot do %q", s.Do))
	return nil
}

func call(name string, arguments json.RawMessage) answer {
	var given any
	if arguments != nil {
		given = arguments
	}
	result, err := caisson.CallTool(name, given)
	if err == nil {
		return answer{ToolResult: result}
	}
	return answer{Failure: script.NewFailure(err)}
}

// end names how a call ended.
func (a answer) end() string {
	switch {
	case a.Failure != nil:
		return a.Failure.Status.Error()
	case a.Success:
		return "success"
	}
	return a.Kind
}

//go:wasmimport caisson:tools@1 call
func toolsCall(at, length uint32) uint64

// raw makes a call that no SDK would make, and returns the status and the response.
func raw(request string) [2]string {
	bytes := []byte(request)
	result := toolsCall(script.Span(bytes))
	runtime.KeepAlive(bytes)
	return [2]string{fmt.Sprint(result >> 32), string(script.Response())}
}

// burned keeps the compiler from eliminating the loop that burns fuel.
var burned uint32

// burn executes a few instructions in each round.
func burn(rounds int) uint32 {
	x := uint32(1)
	for range rounds {
		x = x*1664525 + 1013904223
	}
	return x
}

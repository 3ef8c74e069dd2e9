package abi

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/network"
	"github.com/caisson-run/caisson/hostfuncs/stream"
	"github.com/caisson-run/caisson/tool"
)

// FuzzCalls makes any calls with any parameters on a small memory: none may panic or end the
// guest, and what each returns must be there to read.
func FuzzCalls(f *testing.F) {
	text := []byte(valid[request] + valid[exists] + valid[receive] + valid[toolCall] + valid[emit] + valid[get])
	f.Add(text, []byte{})
	at := func(function byte, params ...uint32) []byte {
		script := []byte{function}
		for i := range 4 {
			param := uint32(0)
			if i < len(params) {
				param = params[i]
			}
			script = binary.LittleEndian.AppendUint32(script, param)
		}
		return script
	}
	r, e := uint32(len(valid[request])), uint32(len(valid[exists]))
	f.Add(text, slices.Concat(at(1, 0, r, 5, 10), at(0, 0, 20), at(2, 0, r), at(3, r+e, uint32(len(valid[receive]))), at(0, 1<<31, 1<<31)))
	f.Add(text, slices.Concat(at(4, r, e), at(0, 3, 4), at(1, 1<<32-1, 1<<32-1, 1<<32-1, 1), at(0, 0, 1<<20)))
	f.Add(text, at(5, r+e+uint32(len(valid[receive])), uint32(len(valid[toolCall]))))
	behind := r + e + uint32(len(valid[receive])+len(valid[toolCall]))
	f.Add(text, slices.Concat(at(6, behind, uint32(len(valid[emit]))), at(7, behind+uint32(len(valid[emit])), 2), at(0, 0, 30)))
	functions := Functions()
	f.Fuzz(func(t *testing.T, memory, script []byte) {
		session := &Session{
			Network: &answering{id: 7, response: network.Response{Status: 200, Body: []byte("body")}},
			Secrets: known{"SEARCH_KEY": true}, MaxBody: 64,
			Tools:  &caller{record: tool.Record{Result: tool.Result{Success: true, Output: "done"}}},
			Stream: stream.Open(stream.Options{Bytes: 100}), About: func() About { return About{CallID: "1"} },
		}
		ctx := With(t.Context(), session)
		for ; len(script) >= 17; script = script[17:] {
			function := functions[int(script[0])%len(functions)]
			stack := make([]uint64, 4)
			for i := range stack {
				stack[i] = uint64(binary.LittleEndian.Uint32(script[1+4*i:]))
			}
			before := session.held
			require.NoError(t, function.Call(ctx, flat(memory), stack))
			checkResult(t, session, function, before, stack[0])
		}
	})
}

func checkResult(t *testing.T, session *Session, function hostfuncs.Function, before response, result uint64) {
	t.Helper()
	left := func(r response) int { return len(r.head) + len(r.body) }
	if function.Name == "read" {
		if result == outside {
			result = 0
		}
		require.Equal(t, left(before), left(session.held)+int(result))
		return
	}
	require.LessOrEqual(t, status(result>>32), statusUnavailable)
	require.Equal(t, left(session.held), int(uint32(result)))
}

package abi

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/network"
	"github.com/caisson-run/caisson/hostfuncs/stream"
	"github.com/caisson-run/caisson/tool"
)

// BenchmarkCall is what the protocol adds to a call, reading the response included.
func BenchmarkCall(b *testing.B) {
	const body = 64 << 10
	session := &Session{
		Network: &answering{response: network.Response{Status: 200, URL: "https://api.example.com/", Body: make([]byte, body)}},
		Secrets: known{"SEARCH_KEY": true},
	}
	for _, name := range []string{request, exists} {
		b.Run(name, func(b *testing.B) {
			g := newGuest(b, session)
			g.ctx = With(b.Context(), session)
			params := make([]uint64, len(g.functions[name].Params))
			params[0], params[1] = requestAt, uint64(copy(g.memory[requestAt:], valid[name]))
			b.ReportAllocs()
			for b.Loop() {
				_, err := g.raw(name, params...)
				require.NoError(b, err)
				n, err := g.raw(read, bufferAt, body+1024)
				require.NoError(b, err)
				require.Positive(b, n)
				session.Network.(*answering).requests = nil
			}
		})
	}
}

// BenchmarkEmit is what an emission takes of the host where nobody watches, and where somebody does.
func BenchmarkEmit(b *testing.B) {
	image := `{"type":"image","mime_type":"image/png","partial":true,"data":"` + strings.Repeat("abcd", 48<<10) + `"}`
	deep := `{"type":"json","data":` + strings.Repeat("[", 60) + strings.Repeat("[1],", (maxEmission-200)/4) + "1" + strings.Repeat("]", 60) + `}`
	for name, request := range map[string]string{"text": valid[emit], "partial image of 144 KiB": image, "longest": deep} {
		for who, show := range map[string]func(tool.Emission) error{"nobody": nil, "somebody": func(tool.Emission) error { return nil }} {
			b.Run(name+" for "+who, func(b *testing.B) {
				session := &Session{}
				g := newGuest(b, session)
				g.ctx = With(context.WithoutCancel(b.Context()), session)
				n := uint64(copy(g.memory[requestAt:], request))
				b.ReportAllocs()
				b.SetBytes(int64(n))
				for b.Loop() {
					session.Stream = stream.Open(stream.Options{Bytes: maxEmission, Emit: show})
					result, err := g.raw(emit, requestAt, n)
					require.NoError(b, err)
					require.Zero(b, result)
				}
			})
		}
	}
}

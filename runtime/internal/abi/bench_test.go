package abi

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/network"
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

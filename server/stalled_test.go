package server

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A client without a token asks over HTTP/2 and grants no window for the answer.
func TestAttackNoWindow(t *testing.T) {
	for _, test := range []struct {
		name  string
		stall time.Duration
		in    bool
	}{
		{"guarded", 300 * time.Millisecond, true},
		{"control: as long as the client likes", time.Hour, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := start(t, Options{TLS: certificate(t), Tokens: tokens(t), Limits: Limits{Connections: 2, Stall: test.stall}})
			for range 2 {
				asksWithoutWindow(t, r.address)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/healthz", nil)
			require.NoError(t, err)
			response, err := r.client.Do(request)
			if err == nil {
				response.Body.Close()
			}
			assert.Equal(t, test.in, err == nil, "%v", err)
		})
	}
}

// A stream of events may be silent for longer than its reader may take for one.
func TestSilentStreams(t *testing.T) {
	quiet := Door{Pattern: "/events", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 2 {
			_, _ = io.WriteString(w, "data: x\n\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(400 * time.Millisecond)
		}
		_, _ = io.WriteString(w, "data: the end\n\n")
	})}
	r := start(t, Options{TLS: certificate(t), Limits: Limits{Stall: 100 * time.Millisecond}}, quiet)
	assert.Equal(t, "data: x\n\ndata: x\n\ndata: the end\n\n", r.do(t, "GET", "/events", "").body)
}

func certificate(t *testing.T) *tls.Config {
	t.Helper()
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	t.Cleanup(certified.Close)
	return &tls.Config{Certificates: certified.TLS.Certificates}
}

// asksWithoutWindow sends a request whose answer has a header and no byte of its body.
func asksWithoutWindow(t *testing.T, address string) {
	t.Helper()
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	host, _, err := net.SplitHostPort(address)
	require.NoError(t, err)
	frame := func(kind, flags byte, stream uint32, payload ...byte) []byte {
		header := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))[1:]
		return append(binary.BigEndian.AppendUint32(append(header, kind, flags), stream), payload...)
	}
	const initialWindow = 4
	settings := frame(4, 0, 0, 0, initialWindow, 0, 0, 0, 0)
	asked := append([]byte{0x82, 0x87, 0x84, 0x01, byte(len(host))}, host...) // GET https /, of this host
	_, err = c.Write(append(append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), settings...), frame(1, 5, 1, asked...)...))
	require.NoError(t, err)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
	for { // until the header of the answer, so that the request is under way
		var header [9]byte
		_, err := io.ReadFull(c, header[:])
		require.NoError(t, err)
		payload := make([]byte, int(header[0])<<16|int(header[1])<<8|int(header[2]))
		_, err = io.ReadFull(c, payload)
		require.NoError(t, err)
		if header[3] == 1 {
			return
		}
	}
}

package network

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAttackOverhead: during a request, a server cannot go on sending what is no part of its
// answer. The control reads it to its end.
func TestAttackOverhead(t *testing.T) {
	const flood = 16 << 20
	var nothing bytes.Buffer
	compressor := gzip.NewWriter(&nothing)
	require.NoError(t, compressor.Flush()) // the header
	header := bytes.Clone(nothing.Bytes())
	nothing.Reset()
	require.NoError(t, compressor.Flush()) // an empty block
	block := bytes.Clone(nothing.Bytes())
	nothing.Reset()
	require.NoError(t, gzip.NewWriter(&nothing).Close())
	member := nothing.Bytes()

	const gzipped = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n"
	for name, test := range map[string]struct{ begin, unit string }{
		"empty blocks of gzip":  {gzipped + string(header), string(block)},
		"empty members of gzip": {gzipped, string(member)},
		"chunks of one byte":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1;a=bcdefghijklm\r\nx\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			sent := make(chan int64, 1)
			s := serveRaw(t, func(conn net.Conn) {
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
					return
				}
				io.WriteString(conn, test.begin)
				sent <- repeat(conn, test.unit, flood)
			})
			answer, err := newUnguarded(t, nil).get(t, s.url())
			require.NoError(t, err)
			read, err := io.Copy(io.Discard, answer.Body)
			require.GreaterOrEqual(t, <-sent, int64(flood), "the attack must work on net/http's client: %v after %d bytes", err, read)
			_, err = get(t, s.open(t), s.url())
			require.ErrorIs(t, err, ErrIO)
			require.ErrorIs(t, err, errOverhead)
			assert.Less(t, <-sent, int64(flood))
		})
	}
}

// repeat sends a text until the client has enough, or so many bytes were sent.
func repeat(conn net.Conn, unit string, bytes int64) (sent int64) {
	block := strings.Repeat(unit, 1+(64<<10)/len(unit))
	for sent < bytes {
		n, err := io.WriteString(conn, block)
		sent += int64(n)
		if err != nil {
			break
		}
	}
	return sent
}

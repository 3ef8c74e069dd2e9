package server

import (
	"crypto/tls"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRecordsAreCounted: records are counted in whatever pieces they arrive.
func TestRecordsAreCounted(t *testing.T) {
	var sent []byte
	lengths := []int{0, 1, 5, 255, 256, 300, 16 << 10, 0, 2}
	for _, n := range lengths {
		sent = append(append(sent, 23, 3, 3, byte(n>>8), byte(n)), make([]byte, n)...)
	}
	for _, piece := range []int{1, 2, 3, 5, 7, 1000, len(sent)} {
		var r records
		counted := 0
		for part := range slices.Chunk(sent, piece) {
			counted += r.add(part)
		}
		assert.Equal(t, len(lengths), counted, "pieces of %d", piece)
	}
}

func TestDelays(t *testing.T) {
	var d delays
	now := time.Now()
	assert.Equal(t, 10*recordTime, d.of(10, now))
	assert.Equal(t, 15*recordTime, d.of(5, now), "others wait for the same")
	assert.Equal(t, 1*recordTime, d.of(1, now.Add(time.Minute)), "what was long ago is paid for")
	assert.Equal(t, mostDelayed, d.of(1<<40, now.Add(time.Minute)), "nobody waits longer")
}

// TestAttackShortRecords: a client sends a body in records of one byte, or with updates of the key between them, and
// keeps a processor busy. The control sends as many bytes in one record.
func TestAttackShortRecords(t *testing.T) {
	const bytes = 25_000
	r := start(t, Options{TLS: certificate(t)})
	took := func(record int) time.Duration {
		c, err := net.Dial("tcp", r.address)
		require.NoError(t, err)
		defer c.Close()
		held := &heldBack{Conn: c}
		client := tls.Client(held, &tls.Config{InsecureSkipVerify: true, DynamicRecordSizingDisabled: true})
		require.NoError(t, client.Handshake())
		held.on = true
		send(t, client, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: "+strconv.Itoa(bytes)+"\r\n\r\n")
		body := strings.Repeat("x", record)
		for range bytes / record {
			send(t, client, body)
		}
		began := time.Now()
		_, err = c.Write(held.kept)
		require.NoError(t, err)
		assert.Contains(t, firstLine(t, client), "200")
		return time.Since(began)
	}
	short, long := took(1), took(bytes/2)
	assert.Greater(t, short, bytes*recordTime/2)
	assert.Less(t, long, short/4, "the control")
}

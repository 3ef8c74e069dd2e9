package server

import (
	"bufio"
	"crypto/tls"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/server/auth"
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
		counted, short := 0, 0
		for part := range slices.Chunk(sent, piece) {
			begun, by := r.add(part)
			counted, short = counted+begun, short+by
		}
		assert.Equal(t, len(lengths), counted, "pieces of %d", piece)
		assert.Equal(t, 256+255+251+1+0-44-768+256+254, short)
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

// shortRecords makes a request with a body in records of some length, all of which have arrived before they are read.
// It returns the answer's first line, and when it came.
func shortRecords(t *testing.T, r *running, token string, bytes, record int) (status string, took time.Duration) {
	t.Helper()
	c, err := net.Dial("tcp", r.address)
	require.NoError(t, err)
	defer c.Close()
	held := &heldBack{Conn: c}
	client := tls.Client(held, &tls.Config{InsecureSkipVerify: true, DynamicRecordSizingDisabled: true})
	require.NoError(t, client.Handshake())
	held.on = true
	send(t, client, "POST /echo HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+token+"\r\nContent-Length: "+strconv.Itoa(bytes)+"\r\n\r\n")
	body := strings.Repeat("x", record)
	for range bytes / record {
		send(t, client, body)
	}
	began := time.Now()
	_, _ = c.Write(held.kept) // the server may end the connection
	_ = client.SetReadDeadline(time.Now().Add(20 * time.Second))
	line, _ := bufio.NewReader(client).ReadString('\n')
	return line, time.Since(began)
}

// TestAttackShortRecords: a client without a token that works sends a body in records of one byte. It gets no more than
// its refusal. The controls are as many bytes in two records, and a client with a token.
func TestAttackShortRecords(t *testing.T) {
	const bytes = 60_000
	of := tokens(t)
	token, _ := issued(t, of, auth.Token{Tenant: "acme", Scopes: []auth.Scope{auth.Read}})
	r := start(t, Options{TLS: certificate(t), Tokens: of})
	status, long := shortRecords(t, r, token, bytes, 1)
	assert.Contains(t, status, "200")
	status, _ = shortRecords(t, r, "none", bytes, bytes/2)
	assert.Contains(t, status, "401")
	status, short := shortRecords(t, r, "none", bytes, 1)
	assert.Less(t, short, long/2, "nobody waits for the rest")
	if status != "" {
		assert.Contains(t, status, "401")
	}
}

// shortRecord is an encrypted record of five bytes at most.
var shortRecord = append([]byte{23, 3, 3, 0, 22}, make([]byte, 22)...)

// TestAttackEmptyRecords: a client keeps a processor busy with records without data, such as updates of the key. They
// wait, and end a connection without an authenticated request even if many requests come between. The controls are
// records with data.
func TestAttackEmptyRecords(t *testing.T) {
	const sent = 10_000
	took := func(delivers bool) (took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			s, began := &socket{gone: make(chan struct{})}, time.Now()
			s.delays.Store(&delays{})
			for range sent {
				require.True(t, s.mayDecrypt(shortRecord))
				if delivers {
					s.delivered()
				}
			}
			took = time.Since(began)
		})
		return took
	}
	assert.InDelta(t, sent*dataless*recordTime, took(false), float64(sent*recordTime))
	assert.InDelta(t, sent*recordTime, took(true), float64(sent*recordTime/10), "the control")

	taken := func(empty int) (n int) {
		for s := (&socket{gone: make(chan struct{})}); n < 1000 && s.mayDecrypt(shortRecord); n++ {
			for range empty {
				s.mayDecrypt(shortRecord)
			}
			s.delivered()
			s.idle()
		}
		return n
	}
	assert.Less(t, taken(2), freeRecords)
	assert.Equal(t, 1000, taken(0), "the control")
}

// TestAttackShortRecordsOfOthers: the short records of a tenant, and of callers without a token, delay no records of
// another tenant. The control is the attacker's own.
func TestAttackShortRecordsOfOthers(t *testing.T) {
	underway, now := newInFlight(10), time.Now()
	victim, attacker := auth.Caller{ID: "1", Tenant: "acme"}, auth.Caller{ID: "2", Tenant: "evil"}
	for _, c := range []auth.Caller{victim, attacker} {
		left, ok := underway.enter(t.Context(), c)
		require.True(t, ok)
		defer left()
	}
	underway.delaysOf(attacker).of(1<<40, now)
	underway.delaysOf(auth.Caller{}).of(1<<40, now)
	assert.Equal(t, recordTime, underway.delaysOf(victim).of(1, now))
	assert.Equal(t, mostDelayed, underway.delaysOf(auth.Caller{ID: "3", Tenant: "evil"}).of(1, now), "the control")
}

// TestAttackShortRecordsBetweenOthers: a long record does not make up for many short ones of the same request. The
// controls are checks of health, and requests that were refused and had bodies in short pieces.
func TestAttackShortRecordsBetweenOthers(t *testing.T) {
	record := func(s *socket, length int) bool {
		defer s.delivered()
		return s.mayDecrypt(append([]byte{23, 3, 3, byte(length >> 8), byte(length)}, make([]byte, length)...))
	}
	s, sent := &socket{gone: make(chan struct{})}, 0
	for record(s, 16<<10) && sent < 1000 {
		for range freeRecords / 2 {
			if record(s, 22) {
				sent++
			}
		}
	}
	assert.Less(t, sent, 3*freeRecords)
	s = &socket{gone: make(chan struct{})}
	for range 1000 {
		require.True(t, record(s, 100))
		s.idle()
		for range freeRecords / 2 {
			require.True(t, record(s, 22))
		}
		s.idle()
	}
}

package server

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/server/auth"
)

// Clients that ask for new keys over TLS and read nothing have crypto/tls write while it reads, which blocks. net/http
// closed one after another of their connections, and waited for each. Clients without a token delay nothing.
func TestAttackKeyUpdatesDelayTheStop(t *testing.T) {
	t.Parallel()
	const clients, stall = 4, 40 * time.Second
	stop := func(t *testing.T, updates int, without bool) (took time.Duration, err error) {
		known := tokens(t)
		token, _ := issued(t, known, auth.Token{Scopes: []auth.Scope{auth.Call}})
		r := start(t, Options{TLS: certificate(t), Tokens: known, Limits: Limits{Stall: stall, Drain: time.Millisecond}})
		var stuck sync.WaitGroup
		for range clients {
			c := newUpdater(t, r.address)
			request := "POST /echo HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\nContent-Length: 5000000\r\n\r\n"
			if without {
				request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nG" // and the next, while which the connection is idle
			}
			_, err := c.raw.Write(c.record(applicationRecord, []byte(request)))
			require.NoError(t, err)
			stuck.Go(func() {
				for c.sends(updates) && updates > 0 {
					continue
				}
			})
		}
		stuck.Wait()
		began := time.Now()
		r.stop()
		err = <-r.stopped
		r.stopped <- nil
		return time.Since(began), err
	}
	t.Run("control: bodies that do not arrive", func(t *testing.T) {
		t.Parallel()
		took, err := stop(t, 0, false)
		require.NoError(t, err)
		assert.Less(t, took, cancelTime)
	})
	t.Run("key updates without a token", func(t *testing.T) {
		t.Parallel()
		for range 3 {
			took, err := stop(t, 12, true)
			require.NoError(t, err)
			assert.Less(t, took, cancelTime)
		}
	})
	t.Run("key updates", func(t *testing.T) {
		t.Parallel()
		for range 10 { // the server may happen to be reading
			took, err := stop(t, 12, false)
			require.Less(t, took, cancelTime+stall/2)
			if err != nil {
				require.ErrorIs(t, err, errUnfinished)
				return
			}
		}
		t.Error("no client keeps the server from reading")
	})
}

// The content types of TLS records (RFC 8446, §5.1).
const (
	handshakeRecord   = 22
	applicationRecord = 23
)

// updater is a client over TLS 1.3 that encrypts by itself after the handshake, since crypto/tls sends no KeyUpdate.
type updater struct {
	raw    net.Conn
	secret []byte
	aead   cipher.AEAD
	nonce  []byte
	sent   uint64
}

func newUpdater(t *testing.T, address string) *updater {
	t.Helper()
	raw, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = raw.Close() })
	require.NoError(t, raw.(*net.TCPConn).SetReadBuffer(4096))
	var keys bytes.Buffer
	c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, KeyLogWriter: &keys, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}})
	require.NoError(t, c.HandshakeContext(t.Context()))
	require.EqualValues(t, tls.TLS_AES_128_GCM_SHA256, c.ConnectionState().CipherSuite)
	u := &updater{raw: raw}
	for line := range strings.Lines(keys.String()) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "CLIENT_TRAFFIC_SECRET_0" {
			secret, err := hex.DecodeString(fields[2])
			require.NoError(t, err)
			u.use(secret)
		}
	}
	require.NotNil(t, u.aead)
	return u
}

// use encrypts with the keys of a secret (RFC 8446, §7.3).
func (u *updater) use(secret []byte) {
	block, err := aes.NewCipher(u.expand(secret, "key", 16))
	if err != nil {
		panic(err)
	}
	u.aead, err = cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	u.secret, u.nonce, u.sent = secret, u.expand(secret, "iv", 12), 0
}

// expand is HKDF-Expand-Label without a context (RFC 8446, §7.1).
func (*updater) expand(secret []byte, label string, length int) []byte {
	label = "tls13 " + label
	info := append(binary.BigEndian.AppendUint16(nil, uint16(length)), byte(len(label)))
	key, err := hkdf.Expand(sha256.New, secret, string(append(append(info, label...), 0)), length)
	if err != nil {
		panic(err)
	}
	return key
}

// record encrypts a record (RFC 8446, §5.2).
func (u *updater) record(kind byte, content []byte) []byte {
	head := []byte{applicationRecord, 3, 3, 0, 0}
	binary.BigEndian.PutUint16(head[3:], uint16(len(content)+1+u.aead.Overhead()))
	nonce, number := bytes.Clone(u.nonce), binary.BigEndian.AppendUint64(nil, u.sent)
	for i, b := range number {
		nonce[len(nonce)-len(number)+i] ^= b
	}
	u.sent++
	return u.aead.Seal(head, nonce, append(bytes.Clone(content), kind), head)
}

// sends sends a byte of the body, and KeyUpdates that ask for the same of the server (RFC 8446, §4.6.3). It reports
// whether the server has taken them.
func (u *updater) sends(updates int) bool {
	out := u.record(applicationRecord, []byte(" "))
	for range updates {
		out = append(out, u.record(handshakeRecord, []byte{24, 0, 0, 1, 1})...)
		u.use(u.expand(u.secret, "traffic upd", sha256.Size))
	}
	for len(out) > 0 {
		_ = u.raw.SetWriteDeadline(time.Now().Add(2 * time.Second))
		n, err := u.raw.Write(out)
		if out = out[n:]; err != nil && n == 0 {
			return false // a server that is only slow takes some
		}
	}
	return true
}

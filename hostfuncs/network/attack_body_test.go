package network

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"io"
	"net"
	"net/http"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/manifests"
)

// echoes is a server that echoes the value in the secret's place in many encodings, and the session of a tool that has
// a secret there.
func echoes(t *testing.T) (*server, *Session) {
	t.Helper()
	encoded := func(w http.ResponseWriter, coding string, encoder io.WriteCloser, text string) {
		w.Header().Set("Content-Encoding", coding)
		_, _ = io.WriteString(encoder, text)
		_ = encoder.Close()
	}
	s := serve(t, plain, func(w http.ResponseWriter, r *http.Request) {
		value := r.Header.Get("X-Api-Key")
		switch r.URL.Path {
		case "/deflate":
			encoded(w, "deflate", zlib.NewWriter(w), value)
		case "/gzip":
			encoded(w, "gzip", gzip.NewWriter(w), value)
		case "/twice":
			outer := gzip.NewWriter(w)
			encoded(w, "gzip, gzip", gzip.NewWriter(outer), value)
			_ = outer.Close()
		case "/lines":
			w.Header().Add("Content-Encoding", "gzip")
			w.Header().Add("Content-Encoding", "gzip")
			outer := gzip.NewWriter(w)
			inner := gzip.NewWriter(outer)
			_, _ = io.WriteString(inner, value)
			_, _ = inner.Close(), outer.Close()
		case "/identity":
			w.Header().Set("Content-Encoding", "identity")
			_, _ = io.WriteString(w, value)
		default:
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(value))
		}
	})
	permission := s.permission("127.0.0.1")
	return s, open(t, Options{
		Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grantOf(permission)},
		Secrets: secretFor(t, s, "127.0.0.1", manifests.SecretPlace{Header: "X-Api-Key"}),
	})
}

// TestEncodedAnswersDoNotHideSecrets: what the transport did not decode is not passed on.
func TestEncodedAnswersDoNotHideSecrets(t *testing.T) {
	s, session := echoes(t)
	for _, headers := range [][][2]string{nil, {{"Range", "bytes=0-"}}} {
		for _, path := range []string{"/gzip", "/identity"} {
			answer, err := session.Do(t.Context(), Request{URL: s.at("127.0.0.1", path), Headers: headers})
			require.NoError(t, err, path)
			assert.Equal(t, "[secret API_KEY]", string(answer.Body), path)
		}
		for _, path := range []string{"/deflate", "/twice", "/lines"} {
			require.ErrorIs(t, errOf(session.Do(t.Context(), Request{URL: s.at("127.0.0.1", path), Headers: headers})), hostfuncs.ErrIO, path)
		}
	}
}

// TestEncodedAnswersArePassedOn is the control: without a secret, a tool gets what the server sends, and can decode it.
func TestEncodedAnswersArePassedOn(t *testing.T) {
	s := serve(t, plain, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "deflate")
		encoder := zlib.NewWriter(w)
		_, _ = io.WriteString(encoder, theSecret)
		_ = encoder.Close()
	})
	permission := s.permission("127.0.0.1")
	session := open(t, Options{Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grantOf(permission)}})
	answer := must(get(t, session, s.at("127.0.0.1", "/")))
	decoder := must(zlib.NewReader(bytes.NewReader(answer.Body)))
	assert.Equal(t, theSecret, string(must(io.ReadAll(decoder))))
}

// TestSecretsDoNotComeInParts: a guest cannot ask for an echo piece by piece.
func TestSecretsDoNotComeInParts(t *testing.T) {
	s, session := echoes(t)
	for _, name := range []string{"Range", "range"} {
		for _, part := range []string{"bytes=0-9", "bytes=10-19", "bytes=-9", "bytes=0-1,4-5"} {
			answer := must(session.Do(t.Context(), Request{URL: s.at("127.0.0.1", "/"), Headers: [][2]string{{name, part}}}))
			assert.Equal(t, http.StatusOK, answer.Status)
			assert.Equal(t, "[secret API_KEY]", string(answer.Body))
		}
	}
}

// TestPartsOfAnswers is the control: where no secret goes, parts can be asked for.
func TestPartsOfAnswers(t *testing.T) {
	s := serve(t, plain, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(theSecret))
	})
	permission := s.permission("127.0.0.1")
	session := open(t, Options{Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grantOf(permission)}})
	assert.Equal(t, theSecret[:10], string(must(session.Do(t.Context(), Request{URL: s.at("127.0.0.1", "/"), Headers: [][2]string{{"Range", "bytes=0-9"}}})).Body))
}

// TestAttackAnswersThatTakeLongToMask: as many requests as there may be at once, whose answers are
// of the kind that takes longest to mask, end soon after their context.
func TestAttackAnswersThatTakeLongToMask(t *testing.T) {
	body := []byte(strings.Repeat("%25", 15<<20/3))
	var written sync.WaitGroup
	s := serve(t, plain, func(w http.ResponseWriter, _ *http.Request) {
		defer written.Done()
		_, _ = w.Write(body)
	})
	permission := s.permission("127.0.0.1")
	set := secretFor(t, s, "127.0.0.1", manifests.SecretPlace{Header: "X-Api-Key"})
	options := Options{Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grantOf(permission)}, Secrets: set}

	for attempt := 0; ; attempt++ {
		session := open(t, options)
		ctx, cancel := context.WithCancel(t.Context())
		written.Add(maxInFlight)
		for range maxInFlight {
			require.NoError(t, errOf(session.Send(ctx, Request{URL: s.at("127.0.0.1", "/")})))
		}
		written.Wait() // only masking remains
		cancel()
		ended := time.Now()
		session.Close()
		late := time.Since(ended)
		failed := 0
		for id := range maxInFlight {
			if _, err := session.Receive(t.Context(), id+1); err != nil {
				require.ErrorIs(t, err, hostfuncs.ErrUnavailable)
				failed++
			}
		}
		if late < 50*time.Millisecond && failed > 0 {
			break
		}
		require.Less(t, attempt, 3, "%s late; %d were still masked", late, failed)
	}

	// The control: the remaining masking takes far longer.
	began := time.Now()
	var masked sync.WaitGroup
	for range min(maxInFlight, 2*goruntime.GOMAXPROCS(0)) { // as many keep each processor busy
		masked.Go(func() { set.Mask(body) })
	}
	masked.Wait()
	require.Greater(t, time.Since(began), 100*time.Millisecond)
}

// TestAttackOverhead: during a request, a server cannot keep sending bytes that are not part of its answer. The control
// reads it to its end.
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
			answer := must(newUnguarded(t, nil).get(t, s.url()))
			read, err := io.Copy(io.Discard, answer.Body)
			require.GreaterOrEqual(t, <-sent, int64(flood), "the attack must work on net/http's client: %v after %d bytes", err, read)
			_, err = get(t, s.open(t), s.url())
			require.ErrorIs(t, err, hostfuncs.ErrIO)
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

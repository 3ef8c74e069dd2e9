package network

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

// echoes is a server that tells in many ways what stands in the place of the secret, and
// the session of a tool that has one there.
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
			_, err := session.Do(t.Context(), Request{URL: s.at("127.0.0.1", path), Headers: headers})
			require.ErrorIs(t, err, ErrIO, path)
		}
	}
}

// TestEncodedAnswersArePassedOn is the control: without a secret, a tool gets what the server
// sends, and can decode it.
func TestEncodedAnswersArePassedOn(t *testing.T) {
	s := serve(t, plain, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "deflate")
		encoder := zlib.NewWriter(w)
		_, _ = io.WriteString(encoder, theSecret)
		_ = encoder.Close()
	})
	permission := s.permission("127.0.0.1")
	session := open(t, Options{Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grantOf(permission)}})
	answer, err := get(t, session, s.at("127.0.0.1", "/"))
	require.NoError(t, err)
	decoder, err := zlib.NewReader(bytes.NewReader(answer.Body))
	require.NoError(t, err)
	text, err := io.ReadAll(decoder)
	require.NoError(t, err)
	assert.Equal(t, theSecret, string(text))
}

// TestSecretsDoNotComeInParts: a guest cannot ask for an echo piece by piece.
func TestSecretsDoNotComeInParts(t *testing.T) {
	s, session := echoes(t)
	for _, name := range []string{"Range", "range"} {
		for _, part := range []string{"bytes=0-9", "bytes=10-19", "bytes=-9", "bytes=0-1,4-5"} {
			answer, err := session.Do(t.Context(), Request{URL: s.at("127.0.0.1", "/"), Headers: [][2]string{{name, part}}})
			require.NoError(t, err)
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
	answer, err := session.Do(t.Context(), Request{URL: s.at("127.0.0.1", "/"), Headers: [][2]string{{"Range", "bytes=0-9"}}})
	require.NoError(t, err)
	assert.Equal(t, theSecret[:10], string(answer.Body))
}

package abi

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/tool"
)

// noSecrets is a [Checker] of one secret.
type noSecrets struct{}

func (noSecrets) Check(name string) (bool, *tool.Denial) { return name == "API_KEY", nil }

// TestInvoke: a guest that cannot import functions gets the same answers as one that does.
func TestInvoke(t *testing.T) {
	session := &Session{Secrets: noSecrets{}, About: func() About { return About{CallID: "c", Tool: "t"} }}
	ctx := With(t.Context(), session)
	for name, c := range map[string]struct {
		bytes   string
		request int
		status  uint32
		want    string
	}{
		"caisson:secrets@1.exists":           {`{"name": "API_KEY"}`, 19, 0, `{"exists":true}`},
		"caisson:context@1.get":              {`{}`, 2, 0, `{"call_id":"c","tool":"t","context":{},"files":[]}`},
		"caisson:net@1.request":              {`{"method": "GET", "url": "http://a.example/", "headers": []}body`, 60, 7, `{"message":"the tool has no network"}`},
		"caisson:tools@1.call":               {`{"name": 1}`, 11, 2, ""},
		"caisson:secrets@2.exists":           {`{}`, 2, 2, `{"message":"there is no function caisson:secrets@2.exists in this version"}`},
		"caisson:io@1.read":                  {"", 0, 2, `{"message":"there is no function caisson:io@1.read in this version"}`},
		"wasi_snapshot_preview1.proc_exit":   {"", 0, 2, `{"message":"there is no function wasi_snapshot_preview1.proc_exit in this version"}`},
		"caisson:stream@1.emit":              {`{}{}`, 2, 2, `{"message":"caisson:stream@1.emit takes no body"}`},
		"":                                   {"", 0, 2, `{"message":"there is no function  in this version"}`},
		"caisson:context@1.get.and.the.rest": {"", 0, 2, `{"message":"there is no function caisson:context@1.get.and.the.rest in this version"}`},
	} {
		response, err := Invoke(ctx, name, []byte(c.bytes), c.request)
		require.NoError(t, err, name)
		assert.Equal(t, c.status, response.Status, "%s: %s", name, response.Head)
		if c.want != "" {
			assert.Equal(t, c.want, string(response.Head)+string(response.Body), name)
		}
		assert.Zero(t, session.held, "nothing is kept for a guest that reads no memory")
	}
	_, err := Invoke(t.Context(), "caisson:context@1.get", nil, 0)
	var early *StartError
	require.ErrorAs(t, err, &early, "without a call")
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = Invoke(ended, "caisson:context@1.get", []byte("{}"), 2)
	require.ErrorIs(t, err, context.Canceled)
}

func TestPlainMemory(t *testing.T) {
	memory := plainMemory("0123456789")
	for _, c := range []struct {
		offset, length uint32
		want           string
		ok             bool
	}{{0, 10, "0123456789", true}, {10, 0, "", true}, {3, 2, "34", true}, {10, 1, "", false}, {11, 0, "", false}, {1 << 31, 1 << 31, "", false}, {4294967295, 4294967295, "", false}} {
		view, ok := memory.View(c.offset, c.length)
		assert.Equal(t, c.ok, ok)
		assert.Equal(t, c.want, string(view))
	}
}

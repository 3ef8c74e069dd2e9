package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// TestSalvage: in whatever form a batch is shown, and whatever fails, the records of what has ended
// are printed once, and the failure stays what it is.
func TestSalvage(t *testing.T) {
	ended := done{Report: executor.Report{ID: "batch", Records: []tool.Record{
		{Call: tool.Call{ID: "call_1"}, CallID: "1", Result: tool.Result{Success: true, Output: "done"}},
		{Call: tool.Call{ID: "call_2"}, CallID: "2", Result: tool.Result{Success: true, Output: "done"}},
	}}}
	openai, err := dialectNamed(dialects.OpenAI)
	require.NoError(t, err)
	for name, form := range map[string]struct {
		options batchOptions
		lines   int
		holds   string
	}{
		"records":            {batchOptions{}, 2, `{"id":"call_1",`},
		"events":             {batchOptions{stream: streamEvents}, 1, `{"status":"failed","batch":"batch","results":[{"id":"call_1",`},
		"server-sent events": {batchOptions{stream: streamResponses}, 3, `data: {"type":"caisson.batch","status":"failed","batch":"batch","results":[{"id":"call_1",`},
	} {
		for _, isFull := range []bool{false, true} {
			var stdout, stderr bytes.Buffer
			env := environment{stdout: &stdout, stderr: &stderr}
			if isFull {
				env.stdout = full{}
			}
			v := form.options.view(env, openai)
			v.broken = errors.New("the reader is too slow")
			host := failed(exitLimit, "the tool could not be stopped")
			err := v.salvage(ended, host, v.broken)
			var failure *failure
			require.ErrorAs(t, err, &failure, name)
			assert.Equal(t, exitLimit, failure.code, name)
			assert.Equal(t, "the tool could not be stopped\nthe reader is too slow", failure.Error(), name)
			if !isFull {
				assert.Contains(t, stdout.String(), form.holds, name)
				assert.Equal(t, form.lines, bytes.Count(stdout.Bytes(), []byte("\n")), name)
				assert.Contains(t, stdout.String(), `"id":"call_2"`, name)
				assert.Empty(t, stderr.String(), name)
				continue
			}
			assert.Equal(t, 2, bytes.Count(stderr.Bytes(), []byte("caisson: record: ")), name)
		}
	}
	failure := (&view{env: environment{stdout: full{}, stderr: &bytes.Buffer{}}}).salvage(ended, nil, failed(exitUsage, "no"))
	assert.Equal(t, failed(exitUsage, "no"), failure)
}

// TestLostRecordsAreOneLine: what a tool has printed cannot pass for a line of the command's.
func TestLostRecordsAreOneLine(t *testing.T) {
	var stderr bytes.Buffer
	record := tool.Record{CallID: "1", Result: tool.Result{Success: true, Output: "a\ncaisson: error: forged\u202e\x1b[2J"}}
	environment{stderr: &stderr}.printLost([]tool.Record{record})
	assert.Equal(t, 1, bytes.Count(stderr.Bytes(), []byte("\n")))
	assert.NotContains(t, stderr.String(), "\u202e")
	var read tool.Record
	require.NoError(t, json.Unmarshal(bytes.TrimPrefix(stderr.Bytes(), []byte("caisson: record: ")), &read))
	assert.Equal(t, record.Result.Output, read.Result.Output)
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	embed "github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/dialects/responses"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/manifests"
	caisson "github.com/caisson-run/caisson/sdk/go"
	"github.com/caisson-run/caisson/tool"
)

const tides = `Tides of the estuary

High water is at seven.
The spring tide comes with the new moon.

Low water is at one. Nobody should be in the channel then.
`

// handed returns a host with files by path, of which the ones in order are announced.
func handed(files map[string]string, order ...string) host {
	call := &caisson.CallContext{CallID: "1"}
	for _, path := range order {
		call.Files = append(call.Files, caisson.File{Name: strings.TrimPrefix(path, "/files/"), Path: path})
	}
	return host{
		func() (*caisson.CallContext, error) { return call, nil },
		func(path string) (io.ReadCloser, error) {
			text, ok := files[path]
			if !ok {
				return nil, fs.ErrNotExist
			}
			return io.NopCloser(strings.NewReader(text)), nil
		},
		func(float64, string) error { return caisson.ErrOutside },
	}
}

func TestBestPassagesComeFirst(t *testing.T) {
	h := handed(map[string]string{"/files/a": tides, "/files/b": "Water, water, and water again.\n\nThe moon.\n"}, "/files/a", "/files/b")
	f, err := h.find(arguments{Query: "When does the SPRING tide come?", Passages: 1})
	require.NoError(t, err)
	require.Len(t, f.Results, 1)
	assert.Equal(t, "High water is at seven.\nThe spring tide comes with the new moon.", f.Results[0].Text)
	assert.Equal(t, 3, f.Results[0].Line)
	f, err = h.find(arguments{Query: "water"})
	require.NoError(t, err)
	require.Len(t, f.Results, 3)
	assert.Equal(t, "b", f.Results[0].File, "it has the most matches")
	f, err = h.find(arguments{Query: "estuaries"})
	require.NoError(t, err)
	assert.Equal(t, "No file mentions this.", f.text())
}

func TestWhatCannotBeLookedThrough(t *testing.T) {
	h := handed(map[string]string{"/files/a": tides, "/files/binary": "\xff\xfe", "/files/long": strings.Repeat("water ", maxFile)},
		"/files/gone", "/files/binary", "/files/long", "/files/a")
	f, err := h.find(arguments{Query: "channel"})
	require.NoError(t, err)
	assert.Equal(t, []string{"gone: it cannot be opened", "binary: it is not UTF-8 text", "long: it has more than 1048576 bytes"}, f.Skipped)
	assert.Len(t, f.Results, 1)
	assert.Contains(t, f.text(), "Not searched: gone: it cannot be opened")

	for query, want := range map[string]string{"?!": "the query has no words", "water": "the user has provided no files"} {
		h := handed(nil)
		if query == "?!" {
			h = handed(nil, "/files/a")
		}
		assert.Contains(t, run(strings.NewReader(`{"query":"`+query+`"}`), h).Error, want)
	}
	broken := errors.New("unavailable: the tool has no context")
	h.context = func() (*caisson.CallContext, error) { return nil, broken }
	assert.Equal(t, answer{Error: broken.Error()}, run(strings.NewReader(`{"query":"a"}`), h))
	assert.Contains(t, run(strings.NewReader(`[`), h).Error, "the arguments cannot be read")
}

// opened returns a host with the shipped tool, and a folder with one file.
func opened(t *testing.T) *embed.Host {
	t.Helper()
	root, err := guests.Compile(t.Context(), "examples/retrieve")
	require.NoError(t, err)
	require.NoError(t, guests.ShareCompiledCode(t.Context()))
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "1.txt"), []byte(tides), 0o600))
	grant := manifests.Grant{Tools: []string{"*"}, Grants: manifests.Grants{Files: []manifests.FileGrant{manifests.GrantDirectory("/files", folder, manifests.AccessRead)}}}
	host, err := embed.Open(t.Context(), embed.Options{
		Tools: []string{filepath.Join(root, "examples", "retrieve")}, Policies: []*manifests.Policy{{Grants: []manifests.Grant{grant}}},
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, host.Close(context.Background())) })
	return host
}

// TestFileRetrievalStreamsAsFileSearch: in a stream of the Responses API the call is a search of files, which is
// searching before its results are there.
func TestFileRetrievalStreamsAsFileSearch(t *testing.T) {
	host, events := opened(t), responses.NewEvents(responses.EventsOptions{})
	var names []string
	var item struct {
		Item struct {
			Type, Status string
			Queries      []string
			Results      []struct {
				FileID   string `json:"file_id"`
				FileName string `json:"filename"`
				Score    float64
				Text     string
			}
		}
	}
	_, err := host.Stream(t.Context(), executor.Batch{
		Files: []tool.File{{Name: "Tides.txt", Path: "/files/1.txt", MIMEType: "text/plain", Bytes: int64(len(tides))}},
		Calls: []tool.Call{{ID: "a", Type: "function", Function: tool.Function{Name: "file_search", Arguments: `{"query":"spring tide water"}`}}},
	}, func(event tool.Event) bool {
		mapped, err := events.Map(event)
		require.NoError(t, err)
		for _, e := range mapped {
			if strings.Contains(e.Name, "file_search_call") {
				names = append(names, string(event.Type)+": "+e.Name)
			}
			if e.Name == "response.output_item.done" && item.Item.Type == "" {
				require.NoError(t, json.Unmarshal(e.Data, &item))
			}
		}
		return true
	})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"call_started: response.file_search_call.in_progress", "call_output: response.file_search_call.searching", "call_finished: response.file_search_call.completed",
	}, names)
	assert.Equal(t, "file_search_call", item.Item.Type)
	assert.Equal(t, "completed", item.Item.Status)
	assert.Equal(t, []string{"spring tide water"}, item.Item.Queries)
	require.Len(t, item.Item.Results, 2)
	first := item.Item.Results[0]
	assert.Equal(t, "/files/1.txt", first.FileID)
	assert.Equal(t, "Tides.txt", first.FileName)
	assert.Equal(t, "High water is at seven.\nThe spring tide comes with the new moon.", first.Text)
	assert.Greater(t, first.Score, item.Item.Results[1].Score)
	assert.Less(t, first.Score, 1.0)
}

// TestFileRetrievalMayBeTheAnswer: the batch reports that passages from the user's files may be
// shown unchanged. The tool learns only of files that it was granted.
func TestFileRetrievalMayBeTheAnswer(t *testing.T) {
	host := opened(t)
	report, err := host.Execute(t.Context(), executor.Batch{
		Files: []tool.File{
			{Name: "Tides.txt", Path: "/files/1.txt", MIMEType: "text/plain", Bytes: int64(len(tides))},
			{Name: "Salaries.txt", Path: "/payroll/1.txt", MIMEType: "text/plain", Bytes: 5},
		},
		Calls: []tool.Call{
			{ID: "a", Type: "function", Function: tool.Function{Name: "find_passages", Arguments: `{"query":"spring tide"}`}},
			{ID: "b", Type: "function", Function: tool.Function{Name: "find_passages", Arguments: `{"query":"?"}`}},
		},
	})
	require.NoError(t, err)
	record := report.Records[0]
	require.True(t, record.Result.Success, record.Result.Error)
	assert.Equal(t, "Tides.txt, line 3:\nHigh water is at seven.\nThe spring tide comes with the new moon.", record.Result.Output)
	assert.Empty(t, record.Result.Content, "a model reads a passage once")
	stored, err := json.Marshal(record)
	require.NoError(t, err)
	assert.NotContains(t, string(stored), "Salaries")
	assert.False(t, report.Records[1].Result.Success)
	assert.Equal(t, []string{record.CallID}, report.Final, "a failed call is not final")
}

//go:build knowledge

package tools_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
	"github.com/caisson-run/caisson/wasm-tools/internal/corpus"
)

// corpusBytes is the total size of the documents that are measured.
const corpusBytes = 200 << 20

// TestKnowledgeOf200MB: with the standard profile's limits, in sandboxes, each search of a project of 200 MB finishes,
// with the index and without; grep_chunks finds as many lines as ripgrep; and the index makes no difference to the
// results. It prints the table in knowledge/README.md.
func TestKnowledgeOf200MB(t *testing.T) {
	root := t.TempDir()
	documents, err := corpus.Write(root, corpusBytes)
	require.NoError(t, err)
	policy, err := manifests.ParsePolicy("caisson.yaml", fmt.Appendf(nil, `
schema: caisson-config/v1
grants: [{tools: ["*"], context: [project_id], files: [{path: /project, host: %q, access: read-write, quota: 1GiB, quota_files: 100000}]}]`, root))
	require.NoError(t, err)
	h := hostWith(t, caisson.Options{Policies: []*manifests.Policy{policy}})
	session, err := h.NewSession(executor.SessionOptions{Context: map[string]string{"project_id": "demo"}})
	require.NoError(t, err)
	call := func(name, arguments string, data any) time.Duration {
		t.Helper()
		started := time.Now()
		report, err := h.Execute(t.Context(), executor.Batch{Session: session, Calls: []tool.Call{{ID: "1", Function: tool.Function{Name: name, Arguments: arguments}}}})
		took := time.Since(started)
		require.NoError(t, err)
		result := report.Records[0].Result
		require.True(t, result.Success, result.Error)
		require.NoError(t, json.Unmarshal(result.Data, data))
		return took
	}
	t.Logf("%d documents", documents)
	call("list_knowledge_chunks", `{"knowledge_id":"base0/part0/document0.txt"}`, &struct{}{}) // compiles

	for _, test := range []struct{ arguments, rg string }{
		{`{"patterns":["` + corpus.Rare + `"],"max_results":200}`, "-iF|" + corpus.Rare},
		{`{"patterns":["absent words","hydraulic c","nowhere"],"max_results":200}`, "-ie|absent words|-e|hydraulic c|-e|nowhere"},
		{`{"patterns":["^The \\w+aulic\\b.*here"],"regex":true,"max_results":200}`, `-ie|^The \w+aulic\b.*here`},
	} {
		var found struct {
			Truncated bool
			Matches   []struct{ Count int }
		}
		took := call("grep_chunks", test.arguments, &found)
		require.False(t, found.Truncated, "there was no time for all documents")
		lines := 0
		for _, m := range found.Matches {
			lines += m.Count
		}
		want, native := ripgrep(t, root, strings.Split(test.rg, "|"))
		assert.Equal(t, want, lines)
		assert.Positive(t, lines)
		t.Logf("grep_chunks %s: %v, ripgrep %v", test.arguments, took.Round(time.Millisecond), native.Round(time.Millisecond))
	}

	type results struct {
		Results []struct {
			ChunkID string `json:"chunk_id"`
			Score   float64
		}
		Complete bool
		Index    struct{ Documents int }
	}
	var scanned, indexed []results
	queries := []string{`{"queries":["` + corpus.Rare + `"]}`, `{"queries":["hose dapi neju zo","where is the capacitor","一个问题"],"limit":50}`}
	for _, query := range queries {
		var found results
		took := call("knowledge_search", query, &found)
		require.True(t, found.Complete, "there was no time for all documents")
		scanned = append(scanned, found)
		t.Logf("knowledge_search %s without the index: %v", query, took.Round(time.Millisecond))
	}
	for calls := 1; ; calls++ {
		var state struct {
			Complete bool
			Indexed  int
		}
		took := call("knowledge_index", `{}`, &state)
		t.Logf("knowledge_index, call %d: %v, %d documents", calls, took.Round(time.Millisecond), state.Indexed)
		if state.Complete {
			break
		}
		require.Less(t, calls, 40)
	}
	var again struct{ Complete bool }
	took := call("knowledge_index", `{}`, &again)
	assert.True(t, again.Complete)
	t.Logf("knowledge_index, with nothing to do but to check: %v", took.Round(time.Millisecond))
	for i, query := range queries {
		var found results
		took := call("knowledge_search", query, &found)
		assert.Equal(t, documents, found.Index.Documents)
		found.Index = scanned[i].Index
		indexed = append(indexed, found)
		t.Logf("knowledge_search %s with the index: %v", query, took.Round(time.Millisecond))
	}
	assert.Equal(t, scanned, indexed)
	files, err := filepath.Glob(filepath.Join(root, ".caisson-knowledge", "*"))
	require.NoError(t, err)
	size := int64(0)
	for _, file := range files {
		info, err := os.Stat(file)
		require.NoError(t, err)
		size += info.Size()
	}
	t.Logf("the index has %d MB in %d files", size>>20, len(files))
}

// ripgrep returns how many lines ripgrep finds, and how long it takes on one processor.
func ripgrep(t *testing.T, root string, arguments []string) (lines int, took time.Duration) {
	t.Helper()
	started := time.Now()
	output, err := exec.CommandContext(t.Context(), "rg", append(append([]string{"-j1", "-c", "--no-filename"}, arguments...), root)...).Output()
	took = time.Since(started)
	require.NoError(t, err, "ripgrep is needed: Debian: apt-get install ripgrep")
	for _, number := range strings.Fields(string(output)) {
		n, err := strconv.Atoi(number)
		require.NoError(t, err)
		lines += n
	}
	return lines, took
}

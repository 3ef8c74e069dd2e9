package tools_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/cases"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
)

// TestLongestResults: the largest piece of a file that file_read may be asked for fits its limit of
// output in any encoding, and so does the longest list of file_list.
func TestLongestResults(t *testing.T) {
	rt := newRuntime(t, runtime.Options{})
	example := manifests.Test{Context: map[string]string{"project_id": "demo"}}
	tools := map[string]*cases.Workspace{}
	for _, m := range compiled(t) {
		if m.Name == "file_read" || m.Name == "file_list" {
			w, err := cases.Open(t.Context(), rt, m, example, t.TempDir())
			require.NoError(t, err)
			tools[m.Name] = w
		}
	}
	read, list := tools["file_read"], tools["file_list"]
	characters := map[string]string{
		"utf-8": "\"", "utf-16": "\x00\x25", "latin-1": "\xe9", "koi8-r": "\x80", "shift_jis": "\xb1", "gbk": "\xc4\xe3", "gb18030": "\x81\x30\x81\x30", "big5": "\x88\x62",
	}
	for _, encoding := range testsize.Sample(slices.Sorted(maps.Keys(characters)), 3) {
		character := characters[encoding]
		content := bytes.Repeat([]byte(character), 600_000/len(character))
		require.NoError(t, os.WriteFile(read.File("/project/long.txt"), content, 0o600))
		record, err := read.Call(t.Context(), json.RawMessage(fmt.Sprintf(`{"path": "long.txt", "encoding": %q, "max_bytes": 500000}`, encoding)))
		require.NoError(t, err)
		assert.True(t, record.Result.Success, "%s: %s", encoding, record.Result.Error)
	}

	for i := range 2000 {
		require.NoError(t, os.WriteFile(list.File(fmt.Sprintf("/project/%0250d", i)), nil, 0o600))
	}
	record, err := list.Call(t.Context(), json.RawMessage(`{}`))
	require.NoError(t, err)
	assert.True(t, record.Result.Success, record.Result.Error)
}

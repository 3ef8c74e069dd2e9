package tools_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
)

// TestLongestResults: the largest piece of a file that file_read may be asked for fits its limit of
// output in any encoding, and so does the longest list of file_list.
func TestLongestResults(t *testing.T) {
	rt := newRuntime(t, runtime.Options{})
	example := manifests.Test{Context: map[string]string{"project_id": "demo"}}
	tools := map[string]*workspace{}
	for _, m := range compiled(t) {
		if m.Name == "file_read" || m.Name == "file_list" {
			tools[m.Name] = newWorkspace(t, rt, m, example)
		}
	}
	read, list := tools["file_read"], tools["file_list"]
	for encoding, character := range map[string]string{
		"utf-8": "\"", "utf-16": "\x00\x25", "latin-1": "\xe9", "koi8-r": "\x80", "shift_jis": "\xb1", "gbk": "\xc4\xe3", "gb18030": "\x81\x30\x81\x30", "big5": "\x88\x62",
	} {
		content := bytes.Repeat([]byte(character), 600_000/len(character))
		require.NoError(t, os.WriteFile(read.file("/project/long.txt"), content, 0o600))
		result := read.call(json.RawMessage(fmt.Sprintf(`{"path": "long.txt", "encoding": %q, "max_bytes": 500000}`, encoding))).Result
		assert.True(t, result.Success, "%s: %s", encoding, result.Error)
	}

	for i := range 2000 {
		name := filepath.Join(list.dirs["/project"], fmt.Sprintf("%0250d", i))
		require.NoError(t, os.WriteFile(name, nil, 0o600))
	}
	result := list.call(json.RawMessage(`{}`)).Result
	assert.True(t, result.Success, result.Error)
}

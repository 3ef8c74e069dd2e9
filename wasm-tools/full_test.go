package tools_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// fullCase is a call of a tool that finds too little room in its directory.
type fullCase struct {
	name      string
	tool      string
	files     map[string]string // before the call
	modes     map[string]fs.FileMode
	links     map[string]string
	quota     string // 1 KiB by default
	arguments object
	indexed   bool // the project has an index that is out of date
}

var fullCases = []fullCase{
	{name: "a longer text", tool: "file_write", files: map[string]string{"a.txt": "the old text"},
		arguments: object{"path": "a.txt", "content": strings.Repeat("n", 3000)}},
	{name: "a longer text for an executable file", tool: "file_write", files: map[string]string{"a.sh": "the old text"},
		modes: map[string]fs.FileMode{"a.sh": 0o755}, arguments: object{"path": "a.sh", "content": strings.Repeat("n", 3000)}},
	{name: "a longer text through a link", tool: "file_write", files: map[string]string{"docs/a.txt": "the old text"},
		links: map[string]string{"l": "docs/a.txt"}, arguments: object{"path": "l", "content": strings.Repeat("n", 3000)}},
	{name: "a text that is written in pieces", tool: "file_write", files: map[string]string{"a.txt": "the old text"},
		quota: "1100KiB", arguments: object{"path": "a.txt", "encoding": "utf-16", "content": strings.Repeat("n", 900_000)}},
	{name: "a new file", tool: "file_write", files: map[string]string{"a.txt": "the old text"},
		arguments: object{"path": "b.txt", "content": strings.Repeat("n", 3000)}},
	{name: "a new file in new directories", tool: "file_write", files: map[string]string{"docs/a.txt": "the old text"},
		arguments: object{"path": "docs/b/c/d.txt", "content": strings.Repeat("n", 3000)}},
	{name: "an addition", tool: "file_write", files: map[string]string{"a.txt": "the old text"},
		arguments: object{"path": "a.txt", "mode": "append", "content": strings.Repeat("n", 3000)}},
	{name: "an addition that is written in pieces", tool: "file_write", files: map[string]string{"a.txt": "the old text"},
		quota: "1100KiB", arguments: object{"path": "a.txt", "mode": "append", "encoding": "utf-16", "content": strings.Repeat("n", 900_000)}},
	{name: "directories", tool: "file_mkdir", files: map[string]string{"docs/a.txt": "the old text"},
		arguments: object{"path": "docs/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20"}},
	{name: "a first index", tool: "knowledge_index", files: map[string]string{"a.md": text(900)}, arguments: object{}},
	{name: "a new index", tool: "knowledge_index", files: map[string]string{"a.md": text(900)}, indexed: true, quota: "8KiB", arguments: object{}},
}

// text returns words of so many bytes in all.
func text(length int) string {
	var b strings.Builder
	for i := 0; b.Len() < length; i++ {
		fmt.Fprintf(&b, "word%d ", i)
	}
	return b.String()
}

// writersElsewhere are the tools that may write and have no case in fullCases.
var writersElsewhere = []string{
	"execute_javascript", "execute_python", "execute_skill_script", // they write what a script of the caller's says
	"file_delete", // it only removes
}

// TestFailedWritesChangeNothing: if there is too little room, our tools leave each file unchanged, and create none. The
// control has room.
func TestFailedWritesChangeNothing(t *testing.T) {
	covered := slices.Clone(writersElsewhere)
	root := t.TempDir()
	hosts := map[string]*caisson.Host{} // by quota
	call := func(t *testing.T, project, quota string, c fullCase) tool.Result {
		if hosts[quota] == nil {
			policy, err := manifests.ParsePolicy("caisson.yaml", fmt.Appendf(nil, `
schema: caisson-config/v1
grants: [{tools: ["*"], context: [project_id], files: [{path: /project, host: %q, access: read-write, quota: %s, quota_files: 20}]}]`, root+"/{project_id}", quota))
			require.NoError(t, err)
			hosts[quota] = hostWith(t, caisson.Options{Policies: []*manifests.Policy{policy}})
		}
		session, err := hosts[quota].NewSession(executor.SessionOptions{Context: map[string]string{"project_id": project}})
		require.NoError(t, err)
		arguments, err := json.Marshal(c.arguments)
		require.NoError(t, err)
		report, err := hosts[quota].Execute(t.Context(), executor.Batch{Session: session, Calls: []tool.Call{{ID: "1", Function: tool.Function{Name: c.tool, Arguments: string(arguments)}}}})
		require.NoError(t, err)
		return report.Records[0].Result
	}
	for i, c := range fullCases {
		covered = append(covered, c.tool)
		project := fmt.Sprint("p", i)
		dir := filepath.Join(root, project)
		for name, content := range c.files {
			name = filepath.Join(dir, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
			require.NoError(t, os.WriteFile(name, []byte(content), 0o640))
		}
		for name, mode := range c.modes {
			require.NoError(t, os.Chmod(filepath.Join(dir, name), mode))
		}
		for name, target := range c.links {
			require.NoError(t, os.Symlink(target, filepath.Join(dir, name)))
		}
		const room = "1GiB"
		if c.indexed {
			require.True(t, call(t, project, room, c).Success)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "b.md"), []byte(text(5000)), 0o640))
		}
		before := treeOf(t, dir)
		result := call(t, project, cmp.Or(c.quota, "1KiB"), c)
		assert.Equal(t, tool.ToolFailed, result.Kind, "%s: %s: %s", c.tool, c.name, result.Error)
		assert.Contains(t, result.Error, "no room left", "%s: %s", c.tool, c.name)
		assert.Equal(t, before, treeOf(t, dir), "%s: %s", c.tool, c.name)

		if c.tool == "file_mkdir" {
			continue // its control would need a quota with more files, which TestManifests has
		}
		result = call(t, project, room, c)
		assert.True(t, result.Success, "control: %s: %s: %s", c.tool, c.name, result.Error)
		assert.NotEqual(t, before, treeOf(t, dir), "control: %s: %s", c.tool, c.name)
		for name, mode := range c.modes {
			assert.Equal(t, mode, must(os.Stat(filepath.Join(dir, name))).Mode().Perm())
		}
	}
	for _, m := range compiled(t) {
		if slices.ContainsFunc(m.Permissions.Files, func(p manifests.FilePermission) bool { return p.Access == manifests.AccessReadWrite }) {
			assert.Contains(t, covered, m.Name, "each tool that may write is tested")
		}
	}
}

// treeOf returns the modes and contents of all files below a directory by their names.
func treeOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := []byte{}
		if info.Mode().IsRegular() {
			content, err = os.ReadFile(name)
		}
		tree[name] = info.Mode().String() + " " + string(content)
		return err
	}))
	return tree
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

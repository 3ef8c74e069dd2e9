package holding

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHolding: a folder is held by those above it, and by those whose links lead to it. The control only compares
// paths.
func TestHolding(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	for _, dir := range []string{"granted/deep/state", "outside/state", "granted2"} {
		require.NoError(t, os.MkdirAll(filepath.FromSlash(dir), 0o700))
	}
	for dir, held := range map[string]bool{
		"granted": true, "granted/deep": true, "granted/deep/state": true, "outside/../granted/deep": true, filepath.Join(root, "granted", "deep"): true,
		"outside": false, "outside/state": false, "granted2": false, ".": false, filepath.Dir(root): false,
	} {
		for _, granted := range []string{"granted", "./granted/", filepath.Join(root, "granted")} {
			at, err := Of([]string{"nowhere", granted}, filepath.FromSlash(dir))
			require.NoError(t, err)
			assert.Equal(t, held, at == granted, "%s in %s", dir, granted)
		}
	}
	at, err := Of(nil, "nowhere")
	require.NoError(t, err)
	assert.Empty(t, at)
	for dir, held := range map[string]string{"nowhere": "", "nowhere/state": "", "granted/new/state": "granted"} {
		at, err := Of([]string{"granted"}, filepath.FromSlash(dir))
		require.NoError(t, err)
		assert.Equal(t, held, at, "%s, which does not exist yet", dir)
	}

	if goruntime.GOOS == "windows" {
		return // links require a privilege there
	}
	link := func(target, name string) {
		require.NoError(t, os.Symlink(filepath.FromSlash(target), filepath.FromSlash(name)))
	}
	link("granted/deep", "inside")            // leads into the granted folder
	link("../outside", "granted/out")         // leads out of it, but a tool can replace the link
	link(filepath.Join(root, "granted"), "g") // is the granted folder
	link("g/out", "through")                  // leads through it
	link("outside", "beside")
	link("granted/later", "dangling")
	link("loop", "loop")
	for dir, held := range map[string]bool{
		"inside": true, "inside/state": true, "dangling": true, "dangling/state": true, "granted/out/state": true, "g/deep": true, "through/state": true,
		"beside": false, "beside/state": false,
	} {
		for _, granted := range []string{"granted", "g"} {
			at, err := Of([]string{granted}, filepath.FromSlash(dir))
			require.NoError(t, err)
			assert.Equal(t, held, at == granted, "%s in %s", dir, granted)
		}
	}
	relative, err := filepath.Rel("granted", "through/state")
	require.NoError(t, err)
	assert.False(t, filepath.IsLocal(relative), "control: its path is elsewhere")
	_, err = Of([]string{"granted"}, "loop")
	require.Error(t, err)
}

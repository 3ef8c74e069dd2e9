//go:build unix

package engine

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// TestAttackIrregularEntries puts something else in the place of each file of an entry: the
// entry is made again, and what stood there is not read.
func TestAttackIrregularEntries(t *testing.T) {
	linkTo := func(target string) func(*testing.T, string) {
		return func(t *testing.T, file string) { require.NoError(t, os.Symlink(target, file)) }
	}
	source := program{body: trapUnless(8, 7), memory: 1, data: []wasm.Segment{{Offset: 8, Bytes: []byte{7}}}}
	for name, put := range map[string]func(t *testing.T, file string){
		"endless device": linkTo("/dev/zero"),
		"terminal":       linkTo("/dev/tty"),
		"pipe":           func(t *testing.T, file string) { require.NoError(t, syscall.Mkfifo(file, 0o600)) },
		"link to a pipe": func(t *testing.T, file string) {
			require.NoError(t, syscall.Mkfifo(file+".pipe", 0o600))
			linkTo(file+".pipe")(t, file)
		},
		"link to nothing": linkTo("nothing"),
		"folder":          func(t *testing.T, file string) { require.NoError(t, os.Mkdir(file, 0o700)) },
		"link to what was there": func(t *testing.T, file string) {
			linkTo(file+".old")(t, file)
		},
		"a terabyte": func(t *testing.T, file string) {
			require.NoError(t, os.WriteFile(file, nil, 0o600))
			require.NoError(t, os.Truncate(file, 1<<40))
		},
	} {
		for _, part := range []string{indexFile, moduleFile, dataFile, codeFile, ""} {
			t.Run(name+" "+part, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "cache")
				run := func() time.Duration {
					started := time.Now()
					_, err := compile(t, keeping(t, dir, Options{}), source).Run(t.Context(), plain)
					require.NoError(t, err)
					return time.Since(started)
				}
				run()
				entry := onlyEntry(t, dir)
				file := filepath.Join(entry, part)
				require.NoError(t, os.Rename(file, file+".old"))
				put(t, file)
				if name == "link to what was there" && part == "" {
					require.NoError(t, checkEntry(entry), "only its files must not be links")
					return
				}
				require.ErrorIs(t, checkEntry(entry), errNoEntry)
				assert.Less(t, run(), 30*time.Second)
				require.NoError(t, checkEntry(entry), "it has been made again")
			})
		}
	}
}

// TestAttackIrregularEntriesControl: whoever reads such a file has no end of it, or waits.
func TestAttackIrregularEntriesControl(t *testing.T) {
	folder := t.TempDir()
	device, pipe := filepath.Join(folder, "device"), filepath.Join(folder, "pipe")
	require.NoError(t, os.Symlink("/dev/zero", device))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))

	endless, err := os.Open(device)
	require.NoError(t, err)
	defer endless.Close()
	read, err := io.CopyN(io.Discard, endless, 1<<30)
	require.NoError(t, err)
	assert.EqualValues(t, 1<<30, read)

	opened := make(chan error, 1)
	go func() {
		_, err := os.ReadFile(pipe)
		opened <- err
	}()
	select {
	case err := <-opened:
		require.Fail(t, "the attack must work", "%v", err)
	case <-time.After(200 * time.Millisecond):
	}
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	<-opened
}

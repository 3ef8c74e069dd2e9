//go:build unix

package engine

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// TestAttackIrregularEntries puts something else in the place of each file of an entry: the entry is made again, and
// the replacement is not read.
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
					mustRun(t, compile(t, keeping(t, dir, Options{}), source), plain)
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

// TestAttackIrregularEntriesControl: a plain read of such a file never ends, or blocks.
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

// TestScratchOfOthersStays: the sweep does not touch files that other programs may have put there.
func TestScratchOfOthersStays(t *testing.T) {
	folder := t.TempDir()
	target := filepath.Join(folder, "target")
	aged(t, target, 2*abandonedAge)
	link := filepath.Join(folder, "caisson-compiled-1")
	require.NoError(t, os.Symlink(target, link))
	file := filepath.Join(folder, "caisson-compiled-2")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	open := filepath.Join(folder, "caisson-compiled-3")
	require.NoError(t, os.Mkdir(open, 0o700))
	require.NoError(t, os.Chmod(open, 0o755))
	kept := []string{target, link, file, open}
	if os.Geteuid() == 0 {
		foreign := filepath.Join(folder, "caisson-compiled-4")
		aged(t, foreign, 2*abandonedAge)
		require.NoError(t, os.Chown(foreign, 65534, 65534))
		kept = append(kept, foreign)
	}
	require.NoError(t, sweepScratch(folder, time.Now().Add(2*abandonedAge)))
	for _, path := range kept {
		_, err := os.Lstat(path)
		assert.NoError(t, err, path)
	}
}

// limitedChild marks the process of TestChildUnderLowLimits.
const limitedChild = "CAISSON_TEST_LIMITED"

// TestChildUnderLowLimits: under a user without privileges, whose hard limits are lower
// than those that the compiler would set, it keeps to the lower ones, and compiles.
func TestChildUnderLowLimits(t *testing.T) {
	if directory, limited := os.LookupEnv(limitedChild); limited {
		compileUnderLowLimits(t, directory)
		return
	}
	executable, err := os.Executable()
	require.NoError(t, err)
	directory := t.TempDir()
	for _, reached := range []string{directory, filepath.Dir(directory)} {
		require.NoError(t, os.Chmod(reached, 0o711)) // by another user as well
	}
	process := exec.CommandContext(t.Context(), executable, "-test.run=^TestChildUnderLowLimits$", "-test.v")
	process.Env = append(os.Environ(), limitedChild+"="+directory)
	said, err := process.CombinedOutput()
	require.NoError(t, err, "%s", said)
	assert.Contains(t, string(said), "--- PASS: TestChildUnderLowLimits", "the process has run the test")
}

const nobody = 65534

func compileUnderLowLimits(t *testing.T, directory string) {
	const hard, soft = 40, 30 // seconds
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: soft, Max: hard}))
	staging, err := os.MkdirTemp(directory, "")
	require.NoError(t, err)
	if os.Geteuid() == 0 {
		// Root may raise hard limits.
		require.NoError(t, os.Chown(staging, nobody, nobody))
		require.NoError(t, syscall.Setuid(nobody))
	}
	require.Error(t, unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: hard + 1, Max: hard + 1}), "control: this user may not raise it")

	module := bytes.NewReader(program{body: nothing, memory: 1}.bytes())
	require.NoError(t, serve(t.Context(), staging, strconv.Itoa(4<<30), "60", module))
	_, err = onlyFile(staging)
	require.NoError(t, err)
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_CPU, &limit))
	assert.Equal(t, unix.Rlimit{Cur: soft, Max: soft}, limit)
}

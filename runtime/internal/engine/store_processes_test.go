package engine

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
)

// The environment of the processes that TestProcessesShareAStore starts.
const (
	hammeredStore = "CAISSON_TEST_STORE" // its directory
	hammerSeed    = "CAISSON_TEST_SEED"
)

// TestProcessesShareAStore: processes that read, make, damage and remove the same entries
// at the same time all get their modules, and none of them compiles a module in its own
// process because another has just taken the code away: [view.show] would say so.
func TestProcessesShareAStore(t *testing.T) {
	if dir, hammering := os.LookupEnv(hammeredStore); hammering {
		seed, err := strconv.ParseUint(os.Getenv(hammerSeed), 10, 64)
		require.NoError(t, err)
		hammer(t, dir, rand.New(rand.NewPCG(seed, 0)))
		return
	}
	executable, err := os.Executable()
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "cache")
	var group sync.WaitGroup
	for seed := range 4 {
		group.Go(func() {
			process := exec.CommandContext(t.Context(), executable, "-test.run=^TestProcessesShareAStore$")
			process.Env = append(os.Environ(), hammeredStore+"="+dir, hammerSeed+"="+strconv.Itoa(seed))
			said, err := process.CombinedOutput()
			assert.NoError(t, err, "%s", said)
		})
	}
	group.Wait()
	for _, pattern := range []string{stagingPattern, viewPattern, removedPattern} {
		left, err := filepath.Glob(filepath.Join(dir, pattern))
		require.NoError(t, err)
		assert.Empty(t, left)
	}
	var total int64
	for _, entry := range entries(t, dir) {
		o, err := measure(entry)
		require.NoError(t, err)
		total += o.bytes
	}
	assert.LessOrEqual(t, total, int64(hammeredBytes))
}

// hammeredBytes has room for about two of three modules.
const hammeredBytes = 500_000

// hammer makes engines, which compile one module each, and damages entries.
func hammer(t *testing.T, dir string, random *rand.Rand) {
	for range testsize.Of(15, 50) {
		e := keeping(t, dir, Options{CacheBytes: hammeredBytes})
		p := sized(byte(random.IntN(3)))
		mustRun(t, compile(t, e, p), plain)
		entry := e.store.entry(DigestOf(p.bytes()), role{})
		switch random.IntN(4) {
		case 0:
			require.NoError(t, e.store.discard(entry))
		case 1:
			damageEntry(t, *e.store, entry)
		}
		require.NoError(t, e.Close(t.Context()))
	}
}

// damageEntry puts a damaged entry in place of an entry, unless another process is faster.
// It does not write into the files that are there, which another process may be reading:
// that a disk does so is a damage against which nothing helps.
func damageEntry(t *testing.T, s store, entry string) {
	t.Helper()
	damaged, err := os.MkdirTemp(s.directory, "damaged-*")
	require.NoError(t, err)
	for _, name := range []string{indexFile, moduleFile, codeFile} {
		content, err := os.ReadFile(filepath.Join(entry, name))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		require.NoError(t, err)
		if name == codeFile {
			content[len(content)/2] ^= 1
		}
		require.NoError(t, os.WriteFile(filepath.Join(damaged, name), content, 0o600))
	}
	require.NoError(t, s.discard(entry))
	if os.Rename(damaged, entry) != nil {
		require.NoError(t, os.RemoveAll(damaged))
	}
}

//go:build !race

package engine

import (
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
)

// numbers are what exported functions are called with, one row a call.
func numbers() [][]uint64 {
	return [][]uint64{{0}, {3, 4, 5, 6}, {20, 8, 12, 2}, {16, 7, 1 << 20, 3}, {math.MaxUint32, 1, 1 << 31}}
}

// commands are the ways in which the programs among wazero's modules are started; each
// is started in all of them, most of which it calls wrong.
func commands() []launch {
	lines := []string{"", "tool", "tool /test.txt", "tool ls", "tool ls .", "tool ls . repeat", "tool stat", "tool poll", "tool poll 0 1000",
		"tool sleepmillis 5", "tool open-rdonly", "tool open-wronly", "tool -nums 3,4", "tool 3 4"}
	var launches []launch
	for _, line := range lines {
		launches = append(launches, launch{strings.Fields(line), "standard input\nsecond line\n"})
	}
	return launches
}

// refusals are the features that modules of wazero's need and this engine refuses, by a part
// of the modules' names.
func refusals() map[string]string {
	const exceptions, threads = "needs exception handling, which is not supported", "needs threads, which is not supported"
	return map[string]string{
		"cpp_exceptions.wasm":               exceptions,
		"testdata/eh_":                      exceptions,
		"pthread.wasm":                      threads,
		"testdata/threads/":                 threads,
		"experimental/testdata/memory.wasm": threads,
		"fuzzcases/testdata/2131.wasm":      threads,
		"fuzzcases/testdata/873.wasm":       "so instantiating the module traps",
		"fuzzcases/testdata/874.wasm":       "so instantiating the module traps",
		"experimental/testdata/fac.wasm":    "return_call needs tail calls, which is not supported",
	}
}

// endless are calls of wazero's modules that do not end, or count down from 1<<32.
func endless() map[string][]string {
	return map[string][]string{
		"cmd/wazero/testdata/infinite_loop.wasm":             {"_start []"},
		"internal/integration_test/bench/testdata/case.wasm": {"base64 [4294967295 1 2147483648]"},
		"internal/integration_test/engine/testdata/infinite_loop.wasm": {
			"infinite_loop [0]", "infinite_loop [3 4 5 6]", "infinite_loop [20 8 12 2]", "infinite_loop [16 7 1048576 3]", "infinite_loop [4294967295 1 2147483648]"},
		"testdata/fac.wasm": {"fac-ssa [0]", "fac-ssa [4294967295 1 2147483648]"},
	}
}

func TestModulesOfWazeroBehaveTheSame(t *testing.T) {
	t.Parallel()
	var total tally
	sources := modulesBelow(t, moduleFolder(t, "github.com/tetratelabs/wazero"), "spectest")
	for _, name := range testsize.Sample(slices.Sorted(maps.Keys(sources)), 40) {
		source := sources[name]
		m := candidate{name: name, source: source, launches: commands(), rows: numbers(), fuel: 30_000_000, endless: endless()[name]}
		if len(m.endless) == 1 && m.endless[0] == "_start []" {
			m.launches = m.launches[:1]
		}
		if strings.HasSuffix(name, "engine/testdata/recursive.wasm") {
			m.rows = m.rows[:3] // it calls its host as many times as it is told to
		}
		for part, reason := range refusals() {
			if strings.Contains(name, part) {
				m.refusal = reason
			}
		}
		t.Run(name, func(t *testing.T) { total.add(m.compare(t)) })
	}
	t.Log(total)
	assert.Equal(t, testsize.Of(40, 123+16), total.modules+total.refused)
	assert.LessOrEqual(t, total.refused, 16)
}

// modulesBelow reads the modules of a folder, but not those in subfolders of the name that is left out.
func modulesBelow(t *testing.T, root, without string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == without:
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".wasm":
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		found[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	})
	require.NoError(t, err)
	return found
}

package wasm

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wazeroDir is the folder of the wazero module, which ships the specification's tests as
// binary modules, and modules of several compilers.
func wazeroDir(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	require.NoError(t, err)
	dir := strings.TrimSpace(string(out))
	require.DirExists(t, dir)
	return dir
}

// command is a command of a test script that has a module.
type command struct {
	Type     string `json:"type"`
	Filename string `json:"filename"`
}

// valid reports whether the module is valid: the command either instantiates it, or
// expects that to fail for want of an import or by a trap.
func (c command) valid() bool {
	return c.Type == "module" || c.Type == "assert_unlinkable" || c.Type == "assert_uninstantiable"
}

// commands returns the commands of a folder that have a binary module. Modules in the
// text format are not for us.
func commands(t *testing.T, dir string) []command {
	t.Helper()
	scripts, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	var found []command
	for _, path := range scripts {
		source := read(t, path)
		var script struct {
			Commands []command `json:"commands"`
		}
		require.NoError(t, json.Unmarshal(source, &script))
		for _, c := range script.Commands {
			if filepath.Ext(c.Filename) == ".wasm" {
				found = append(found, c)
			}
		}
	}
	return found
}

// files are the names of the modules first to last of a script.
func files(script string, first, last int) []string {
	var names []string
	for n := first; n <= last; n++ {
		names = append(names, fmt.Sprintf("%s.%d.wasm", script, n))
	}
	return names
}

func outcome(err error) string {
	var failure *Error
	if errors.As(err, &failure) {
		return failure.Kind.Error()
	}
	return "accepted"
}

// proposal takes the name of the proposal from an error.
func proposal(t *testing.T, err error) string {
	t.Helper()
	_, rest, found := strings.Cut(err.Error(), " needs ")
	require.True(t, found, err)
	name, _, found := strings.Cut(rest, ",")
	require.True(t, found, err)
	return name
}

// Modules that compilers made, and those that once broke wazero.
func TestOtherModulesOfWazero(t *testing.T) {
	refused := map[string]string{
		"experimental/testdata/cpp_exceptions.wasm":                          ExceptionHandling,
		"experimental/testdata/memory.wasm":                                  Threads,
		"experimental/testdata/pthread.wasm":                                 Threads,
		"internal/integration_test/engine/testdata/eh_br_orphan.wasm":        ExceptionHandling,
		"internal/integration_test/engine/testdata/eh_br_stale_handler.wasm": ExceptionHandling,
		"internal/integration_test/engine/testdata/eh_cross_callnative.wasm": ExceptionHandling,
		"internal/integration_test/engine/testdata/eh_pdfium.wasm":           ExceptionHandling,
		"internal/integration_test/engine/testdata/eh_throw_ref_null.wasm":   ExceptionHandling,
		"internal/integration_test/engine/testdata/threads/add.wasm":         Threads,
		"internal/integration_test/engine/testdata/threads/mutex.wasm":       Threads,
		"internal/integration_test/engine/testdata/threads/sub.wasm":         Threads,
		"internal/integration_test/engine/testdata/threads/xor.wasm":         Threads,
		"internal/integration_test/fuzzcases/testdata/2131.wasm":             Threads,
	}
	root := wazeroDir(t)
	spectest := filepath.Join(root, "internal", "integration_test", "spectest")
	accepted, got := 0, map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case filepath.Dir(path) == spectest && entry.IsDir() && entry.Name() != "testdata":
			return filepath.SkipDir // a suite
		case filepath.Ext(path) != ".wasm":
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		m, err := Inspect(source)
		if err == nil {
			accepted++
			checkModule(t, source, m)
			_, err = ValidateWithin(t.Context(), source, m, Bounds{}, Features{TailCalls: true}) // fac.wasm has them
			assert.NoError(t, err, path)
			return nil
		}
		name, relErr := filepath.Rel(root, path)
		require.NoError(t, relErr)
		require.ErrorIs(t, err, ErrUnsupported, name)
		got[filepath.ToSlash(name)] = proposal(t, err)
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, refused, got)
	assert.Greater(t, accepted, 100)
	t.Logf("%d accepted, %d refused", accepted, len(got))
}

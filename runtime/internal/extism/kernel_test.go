package extism

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// TestKernelIsBuilt: the committed kernel is that of the committed source.
func TestKernelIsBuilt(t *testing.T) {
	sums, err := os.ReadFile("kernel/SHA256SUMS")
	require.NoError(t, err)
	listed := 0
	for lines := bufio.NewScanner(bytes.NewReader(sums)); lines.Scan(); listed++ {
		want, name, _ := strings.Cut(lines.Text(), "  ")
		content, err := os.ReadFile(filepath.Join("kernel", name))
		require.NoError(t, err)
		sum := sha256.Sum256(content)
		assert.Equal(t, want, hex.EncodeToString(sum[:]), "%s: run build.sh", name)
	}
	entries, err := os.ReadDir("kernel")
	require.NoError(t, err)
	assert.Len(t, entries, listed+1, "SHA256SUMS lists every file but itself")
}

// TestKernelHasWhatIsOffered: the kernel exports each function that plug-ins may import, with these types, and no
// other. It imports the functions that the host has for it.
func TestKernelHasWhatIsOffered(t *testing.T) {
	description, err := wasm.Inspect(kernelModule)
	require.NoError(t, err)
	type signature struct{ params, results string }
	offers, has := map[string]signature{}, map[string]signature{}
	for _, f := range Offered() {
		offers[f.Name] = signature{letters(f.Params), letters(f.Results)}
	}
	for _, e := range description.Exports {
		if f, found := description.ExportedFunction(e.Name); found {
			has[e.Name] = signature{letters(f.Params), letters(f.Results)}
		}
	}
	assert.Equal(t, offers, has)
	global := slices.IndexFunc(description.Exports, func(e wasm.Export) bool { return e.Kind == wasm.ExternGlobal && e.Name == left })
	assert.GreaterOrEqual(t, global, 0, "what the host reads at the end")

	wants, gets := map[string]signature{}, map[string]signature{}
	for _, i := range description.Imports {
		wants[i.Module+" "+i.Name] = signature{letters(i.Function.Params), letters(i.Function.Results)}
	}
	for _, f := range Kernel(nil).Functions {
		gets[f.Module+" "+f.Name] = signature{letters(f.Params), letters(f.Results)}
	}
	assert.Equal(t, wants, gets)
}

func letters[T ~byte](types []T) string {
	text := ""
	for _, v := range types {
		text += map[hostfuncs.ValueType]string{hostfuncs.I32: "i", hostfuncs.I64: "l"}[hostfuncs.ValueType(v)]
	}
	return text
}

// TestKernelCanBeReset: its instances are reused, and it does not recurse.
func TestKernelCanBeReset(t *testing.T) {
	description, err := wasm.Inspect(kernelModule)
	require.NoError(t, err)
	analysis, err := wasm.Validate(kernelModule, description)
	require.NoError(t, err)
	rewritten, err := wasm.Rewrite(t.Context(), kernelModule, analysis, wasm.Passes{Depth: true, Globals: true})
	require.NoError(t, err)
	assert.Zero(t, rewritten.Recursive)
	assert.Empty(t, rewritten.Unrestorable)
}

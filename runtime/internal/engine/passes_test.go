package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// passesOutput has a line for each PassesVersion: the digest of what the passes make of the
// specification's modules. Add lines; a line that is there belongs to a version that people
// have in their caches.
var passesOutput = []string{
	1: "2a1513b81054cd94cd48262f867c03370db2a69963419406b408024c76fc2ef3",
	2: "93079ce393ba74f565e020066a1a7b24d13103bcdeede9ed64fe5bef40b868ed",
	3: "6c71231a06b010308a68c08ba93a36cc6945844615e90fdca9209aa2e78c4266",
	4: "fd617f6246daaa10bda926b7d5b8b439977d8ff312359762a24dab2a0194d8dc",
	5: "749266dbf343b0460b552adb65bc2d0bd18dae475902334edb6b09b0c18c5d3f",
	6: "28a6ba3a3bc8a905cb1810fabe516f16391fb29fab3c70b12eb0baaa3d55c015",
	7: "a156f3247c0953541bbbe278a106607b35e04de23466cd8e7ce9971cc31aa409",
}

// TestPassesVersion: what a version of the passes rewrote is not used by another.
func TestPassesVersion(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	require.NoError(t, err)
	folder := filepath.Join(strings.TrimSpace(string(out)), "internal", "integration_test", "spectest", "v2", "testdata")
	modules, err := filepath.Glob(filepath.Join(folder, "*.wasm"))
	require.NoError(t, err)
	require.Greater(t, len(modules), 3000)
	sum := sha256.New()
	for _, module := range modules {
		source, err := os.ReadFile(module)
		require.NoError(t, err)
		addPasses(sum, filepath.Base(module), source)
	}
	addPasses(sum, "everything", everything().bytes())
	addPasses(sum, "a program", selfTested)
	for _, language := range []guests.Language{guests.C, guests.Rust} {
		source, err := guests.KernelCommand(t.Context(), language, "")
		require.NoError(t, err)
		addPasses(sum, string(language), source)
	}
	addPasses(sum, "a dispatch", machine{table: []int{0, 1, 2}, places: []site{{calls: true, leave: sometimes, to: 2}, {}, {leave: always}}, steps: 9}.program(0).bytes())
	require.Len(t, passesOutput, PassesVersion+1, "one line a version")
	assert.Equal(t, passesOutput[PassesVersion], hex.EncodeToString(sum.Sum(nil)),
		"the passes make something else of a module: add one to PassesVersion, and a line to passesOutput")
}

// addPasses adds to a digest what the passes make of a module, or that they refuse it.
func addPasses(sum hash.Hash, name string, source []byte) {
	for _, trusted := range []bool{false, true} {
		bounds := wasm.Bounds{}
		if trusted {
			bounds = unbounded()
		}
		fmt.Fprintf(sum, "%s %t ", name, trusted)
		description, err := wasm.Inspect(source)
		if err != nil {
			fmt.Fprintln(sum, "refused")
			continue
		}
		r, err := rewriteWithin(source, description, bounds)
		fmt.Fprintf(sum, "%t %+v\n", err == nil, r)
	}
}

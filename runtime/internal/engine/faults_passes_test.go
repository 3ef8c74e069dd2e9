//go:build faults

package engine

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/overlay"
)

// passFaults are mistakes that make a rewritten module do something else than the original, and
// charge the same. That a copy to beyond the end begins is none: it would begin at the end.
var passFaults = map[string]overlay.Edit{
	"memory.copy goes in the wrong direction":                {File: "pass_bulk.go", Old: "at(opLocalGet, bulkFrom).do(opI32LeU)", New: "at(opLocalGet, bulkFrom).do(opI32GtU)"},
	"memory.copy goes one way alone":                         {File: "pass_bulk.go", Old: "at(opLocalGet, bulkFrom).do(opI32LeU)", New: "at(opLocalGet, bulkFrom).do(opDrop, opDrop).i32(1)"},
	"pieces from the back begin a byte too far":              {File: "pass_bulk.go", Old: "w.end(start).i32(w.chunk).do(opI32Sub)", New: "w.end(start).i32(w.chunk - 1).do(opI32Sub)"},
	"pieces from the front leave a byte out":                 {File: "pass_bulk.go", Old: "w.at(opLocalGet, start).i32(w.chunk).do(opI32Add)", New: "w.at(opLocalGet, start).i32(w.chunk + 1).do(opI32Add)"},
	"the address to copy from stays":                         {File: "pass_bulk.go", Old: "	if w.moves() {\n		w.advance(bulkFrom)\n	}\n", New: ""},
	"the address to fill stays":                              {File: "pass_bulk.go", Old: "	w.advance(bulkTo)\n", New: "	if w.moves() {\n		w.advance(bulkTo)\n	}\n"},
	"the last piece of all is done twice":                    {File: "pass_bulk.go", Old: "w.i32(w.chunk).do(opI32GtU).at(opBrIf, 0)", New: "w.i32(0).do(opI32GtU).at(opBrIf, 0)"},
	"a copy from beyond the end begins":                      {File: "pass_bulk.go", Old: "	if w.moves() {\n		w.end(bulkFrom)\n", New: "	if w.moves() {\n		w.at(opLocalGet, bulkFrom)\n"},
	"a fill beyond the end begins":                           {File: "pass_bulk.go", Old: "	w.end(bulkTo)\n	if w.moves() {\n", New: "	w.at(opLocalGet, bulkTo)\n	if w.moves() {\n"},
	"whether it is beyond the end is found in 32 bits":       {File: "pass_bulk.go", Old: "	w.overflow(bulkTo)\n", New: ""},
	"a dispatch leads to the place behind":                   {File: "pass_meter.go", Old: "	in.index -= uint32(place)\n", New: "	in.index -= uint32(place) - 1\n"},
	"a return leaves what it took of the stack":              {File: "pass_loop.go", Old: "		p.leave(b, in, meters && alone)\n", New: "		_ = meters && alone\n"},
	"a branch to the function's end skips what stands there": {File: "pass_depth.go", Old: "	b.leave = append(b.leave, p.leave...)\n", New: ""},
}

// untestedFaults are mistakes that leave out tests of the meter, and charge the same.
var untestedFaults = map[string]overlay.Edit{
	"functions do not test where they end": {File: "pass_fuel.go", Old: "		p.runs[p.run].tested = true\n", New: ""},
	"the work of leaves is not counted":    {File: "pass_fuel.go", Old: "		run.work += int64(leaf.Instructions + leaf.Moves)\n", New: "		_ = leaf\n"},
}

// TestFaultsOfPasses: the differential tests notice each, with the verifier out of the way.
func TestFaultsOfPasses(t *testing.T) {
	notice(t, passFaults, "^(TestLongBulkOperations|TestWaysOutOfRecursion|TestDispatch.*)$")
}

// TestFaultsOfTests: counting what programs execute notices each, with the verifier out of the way.
func TestFaultsOfTests(t *testing.T) {
	notice(t, untestedFaults, "^(TestAttackRecursionWithWorkOnTheWayBack|TestAttackLeavesInARow)$")
}

// notice checks that tests fail with each of the faults, and pass without.
func notice(t *testing.T, faults map[string]overlay.Edit, tests string) {
	unverified := overlay.Edit{File: "runtime/internal/engine/rewrite.go",
		Old: "	case err != nil:\n		return rewritten{}, fmt.Errorf(\"cannot prove", New: "	case err != nil && false:\n		return rewritten{}, fmt.Errorf(\"cannot prove"}
	run := func(edits ...overlay.Edit) ([]byte, error) {
		path, err := overlay.Write(t.TempDir(), filepath.Join("..", "..", ".."), append(edits, unverified))
		require.NoError(t, err)
		command := exec.CommandContext(t.Context(), "go", "test", "-overlay", path, "-count=1", "-vet=off", "-ldflags=-s", "-run", tests, ".")
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		return command.CombinedOutput()
	}
	out, err := run()
	require.NoError(t, err, "the control: %s", out)
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fault.File = "runtime/internal/wasm/" + fault.File
			out, err := run(fault)
			require.Error(t, err)
			assert.Contains(t, string(out), "--- FAIL", "it is a test that notices")
		})
	}
}

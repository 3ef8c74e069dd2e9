//go:build faults

package engine

import (
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
	"pieces from the back begin a byte too far":              {File: "pass_bulk.go", Old: ".i32(chunkBytes).do(opI32Sub)\n}\n\n// more", New: ".i32(chunkBytes - 1).do(opI32Sub)\n}\n\n// more"},
	"pieces from the front leave a byte out":                 {File: "pass_bulk.go", Old: ".i32(chunkBytes).do(opI32Add)", New: ".i32(chunkBytes + 1).do(opI32Add)"},
	"the address to copy from stays":                         {File: "pass_bulk.go", Old: "e.advance(bulkTo).advance(bulkFrom)", New: "e.advance(bulkTo)"},
	"the address to fill stays":                              {File: "pass_bulk.go", Old: "	e.advance(bulkTo)\n	e.more()\n", New: "	e.more()\n"},
	"the last piece of all is done twice":                    {File: "pass_bulk.go", Old: "return e.i32(chunkBytes).do(opI32GtU).at(opBrIf, 0)", New: "return e.i32(0).do(opI32GtU).at(opBrIf, 0)"},
	"a copy from beyond the end begins":                      {File: "pass_bulk.go", Old: "	e.overEnd(bulkFrom).block(opIf).whole(opMemoryCopy).do(opReturn, opEnd)\n", New: ""},
	"a fill beyond the end begins":                           {File: "pass_bulk.go", Old: "	e.overEnd(bulkTo).block(opIf).whole(opMemoryFill).do(opReturn, opEnd)\n", New: ""},
	"whether it is beyond the end is found in 32 bits":       {File: "pass_bulk.go", Old: "e.at(opLocalGet, address).do(opI64ExtendU).at(opLocalGet, bulkLength).do(opI64ExtendU, opI64Add)", New: "e.at(opLocalGet, address).at(opLocalGet, bulkLength).do(opI32Add, opI64ExtendU)"},
	"a dispatch leads to the place behind":                   {File: "pass_meter.go", Old: "	in.index -= uint32(place)\n", New: "	in.index -= uint32(place) - 1\n"},
	"a return leaves what it took of the stack":              {File: "pass_loop.go", Old: "		p.leave(b, in, meters && alone)\n", New: "		_ = meters && alone\n"},
	"a branch to the function's end skips what stands there": {File: "pass_depth.go", Old: "	b.leave = append(b.leave, p.leave...)\n", New: ""},
}

// untestedFaults are mistakes that leave out tests of the meter, and charge the same.
var untestedFaults = map[string]overlay.Edit{
	"functions do not test where they end": {File: "pass_fuel.go", Old: "	if b.counted || p.last > maxRest {\n", New: "	if b.counted {\n"},
	"the work of leaves is not counted":    {File: "pass_fuel.go", Old: "run.work(int64(p.functions[in.index-p.imported].Instructions))", New: "run.work(0)"},
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
		Old: "err := metered.Verify(r.source); err != nil {", New: "err := metered.Verify(r.source); err != nil && false {"}
	run := func(edits ...overlay.Edit) ([]byte, error) {
		path, err := overlay.Write(t.TempDir(), filepath.Join("..", "..", ".."), append(edits, unverified))
		require.NoError(t, err)
		return exec.CommandContext(t.Context(), "go", "test", "-overlay", path, "-count=1", "-run", tests, ".").CombinedOutput()
	}
	out, err := run()
	require.NoError(t, err, "the control: %s", out)
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			fault.File = "runtime/internal/wasm/" + fault.File
			out, err := run(fault)
			require.Error(t, err)
			assert.Contains(t, string(out), "--- FAIL", "it is a test that notices")
		})
	}
}

//go:build faults

package metered_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/overlay"
)

// fault is a mistake that is made in the passes by hand, in files that take the place of the
// real ones while a test is built.
type fault struct {
	name  string
	edits []edit
}

// edit is an [overlay.Edit], without names, as there are many.
type edit struct{ File, Old, New string }

// together are mistakes that other tests make as well. Hole is the mistake by which loops once escaped: the code before
// a loop was charged again on each way back, including the handing over for a call, and nothing was tested there.
// Unverified leaves the verifier out.
type together struct{ Hole, Unverified []edit }

func readTogether(t *testing.T) (f together) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "faults.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &f))
	require.NotEmpty(t, f.Hole)
	require.NotEmpty(t, f.Unverified)
	return f
}

var faults = []fault{
	{"handing over is not tested", []edit{{"pass_fuel.go", "		if run.tested {\n			p.test(b, e)\n		}\n	case run.cost", "	case run.cost"}}},
	{"functions that do not test are relied on", []edit{{"pass_fuel.go", "case defined && p.functions[in.index-p.imported].isLeaf():", "case false:"}}},
	{"what a function does that does not test is not counted", []edit{{"pass_fuel.go", "		run.work += int64(leaf.Instructions + leaf.Moves)\n", "		_ = leaf\n"}}},
	{"charges of a function's own counter are dropped", []edit{{"pass_fuel.go", "case run.cost != 0:", "case false:"}}},
	{"charges in functions without loops are dropped", []edit{{"pass_fuel.go", "	case !b.counted:\n		p.meter.charge(e, run.cost)", "	case !b.counted:"}}},
	{"a charge is doubled", []edit{{"pass_fuel.go", "i32(int32(run.cost)).do(opI32Add)", "i32(2 * int32(run.cost)).do(opI32Add)"}}},
	{"a charge at the entry is one too many", []edit{{"pass_fuel.go", "		p.meter.charge(e, run.cost)\n		if !p.functions", "		p.meter.charge(e, run.cost+1)\n		if !p.functions"}}},
	{"a charge is counted before a branch", []edit{{"pass_fuel.go", "		p.target(b, in.index, place, false)\n		p.split(b, in)", "		p.target(b, in.index, place, false)"}}},
	{"the first arm of an if is charged before it", []edit{{"pass_fuel.go", "			p.split(b, in)\n			p.forks", "			p.forks"}}},
	{"the arm of else is not charged", []edit{{"pass_fuel.go", "	if p.run = noRun; top.entered {\n", "	if p.run = noRun; false {\n"}}},
	{"where ways meet, no run begins", []edit{{"pass_fuel.go", "	if past || top.branched {\n", "	if past || top.branched && p.run == noRun {\n"}}},
	{"br_table is no branch", []edit{{"pass_fuel.go", "			p.target(b, labels.u32(\"a label\"), noRun, false)\n", "			labels.u32(\"a label\")\n"}}},
	{"a loop's header is charged there, too", []edit{{"pass_fuel.go", "	header.cost = 0\n", ""}}},
	{"the way into a loop is not charged for its header", []edit{{"pass_fuel.go", "append(loop.back, loop.before)", "loop.back"}}},
	{"a way back is not charged for the header", []edit{{"pass_fuel.go", "append(loop.back, loop.before)", "append(loop.back[1:], loop.before)"}}},
	{"what was charged for the other arm is not given back", []edit{{"pass_fuel.go", "back.cost-from.cost, 0", "back.cost, 0"}}},
	{"more is given back than was charged", []edit{{"pass_fuel.go", "back.cost-from.cost, 0", "back.cost-from.cost-1, 0"}}},
	{"what is given back was handed over", []edit{{"pass_fuel.go", "before.calls || before.tested ||", "before.tested ||"}}},
	{"what is given back was tested at the entry", []edit{{"pass_fuel.go", "fork.before == entryRun && !p.functions[b.index].isLeaf()", "false"}}},
	{"what is given back was tested by an operation", []edit{{"pass_fuel.go", "!run.calls\n		run.calls, run.owes = true, true", "!run.calls\n		run.owes = true"}}},
	{"what is given back further on was tested", []edit{{"pass_fuel.go", " || from.ahead || back.ahead", ""}}},
	{"what is given back was charged to the meter", []edit{{"pass_fuel.go", " || b.counted && fork.before == entryRun", ""}}},
	{"where ways meet is taken for an arm", []edit{{"pass_fuel.go", "	if past && !top.branched {\n", "	if past {\n"}}},
	{"calls through tables are no calls", []edit{{"pass_fuel.go", "case opCall, opCallIndirect:", "case opCall:"}}},
	{"functions do not test at their beginning", []edit{{"pass_fuel.go", "if !p.functions[b.index].isLeaf() {", "if false {"}}},
	{"long functions do not test", []edit{{"pass_meter.go", "const leafUnits = 64", "const leafUnits = 6400"}}},
	{"functions that call others do not test", []edit{{"pass_meter.go", "!f.Loops && !f.Calls &&", "!f.Loops &&"}}},
	{"a test is the wrong way round", []edit{{"pass_meter.go", "do(opI64GeS)", "do(opI64LtS)"}}},
	{"the host's answer is lost", []edit{{"pass_meter.go", "at(opCall, refill).at(opGlobalSet, r.meter.global).do(opEnd)", "at(opCall, refill).do(opDrop, opEnd)"}}},
	{"br goes back without looking at the counter", []edit{{"pass_loop.go", "	default:\n		e.again(b.counter, p.bound, label)\n	}\n	b.replace(in, e.bytes)\n}\n\n// branchIf", "	default:\n		e.at(opBr, label-1)\n	}\n	b.replace(in, e.bytes)\n}\n\n// branchIf"}}},
	{"br_if goes back without looking at the counter", []edit{{"pass_loop.go", "inside.again(b.counter, p.bound, label+1)", "inside.at(opBr, label)"}}},
	{"a branch with values goes back without looking", []edit{{"pass_loop.go", "	case target.takes:\n		e.below(b.counter, p.bound).at(opBrIf, label-1).at(opBr, label)", "	case target.takes:\n		e.at(opBr, label-1)"}}},
	{"br_table leads to inner loops", []edit{{"pass_loop.go", "e.u32(b.label(labels.u32(\"a label\")) + inside)", "l := labels.u32(\"a label\")\n		if b.target(l).opcode == opLoop {\n			inside--\n		}\n		e.u32(b.label(l) + inside)"}}},
	{"a loop does not hand over", []edit{{"pass_loop.go", "	e.at(opLocalGet, b.counter).at(opCall, p.meter.take).i32(0)", "	e.i32(0)"}}},
	{"a loop does not set its counter back", []edit{{"pass_loop.go", "at(opCall, p.meter.take).i32(0).at(opLocalSet, b.counter)", "at(opCall, p.meter.take)"}}},
	{"the counter is compared the wrong way round", []edit{{"pass_loop.go", "do(opI32LtS)", "do(opI32GtU)"}}},
	{"the bound is out of reach", []edit{{"pass_loop.go", "	minCounterBound = 1 << 12\n	maxCounterBound = 1 << 14", "	minCounterBound = 1 << 30\n	maxCounterBound = 1 << 30"}}},
	{"the counter is a local of the guest's", []edit{{"rewrite_body.go", "b.counter = uint32(len(r.module.Types[f.Type].Params) + f.Locals)", "b.counter = uint32(len(r.module.Types[f.Type].Params) + f.Locals - 1)"}}},
	{"the counter is lost where a function ends", []edit{{"pass_loop.go", "	if b.counted {", "	if false {"}}},
	{"values that move where a block ends are free", []edit{{"pass_fuel.go", "	if top.opcode == opBlock {\n		p.move(top.moves + joinValues)\n	}\n", ""}}},
	{"loops begin for free", []edit{{"pass_fuel.go", "	p.move(values + loopValues)\n", ""}}},
	{"branches move values for free", []edit{{"pass_fuel.go", ".moves / movesPerUnit", ".moves / (movesPerUnit << 20)"}}},
	{"calls move values for free", []edit{{"pass_fuel.go", "p.cost(1 + p.callMoves(in)/movesPerUnit + p.reloadCost(b))", "p.cost(1 + p.reloadCost(b))"}}},
	{"return does not lead to the end", []edit{{"pass_loop.go", "	case opReturn:\n", "	case opGarbageCollected:\n"}}},
	{"a branch is led ahead, and nothing tells", []edit{{"pass_loop.go", "	for range b.passed {\n		e.do(opNop)\n	}\n", ""}}},
	{"what a branch is led past is free", []edit{{"pass_fuel.go", "p.cost(1 + b.passed)", "p.cost(1)"}}},
	{"the guest's nops stay", []edit{{"pass_loop.go", "			b.replace(in, nil)\n", ""}}},
	{"a branch alone in an arm is not told from br_if", []edit{{"pass_loop.go", "			b.insert(in.at, []byte{byte(opNop)})\n", ""}}},
	{"long runs do not end early", []edit{{"pass_fuel.go", "p.runs[p.run].work >= maxWork {", "p.runs[p.run].work < 0 {"}}},
	{"no run tests after much work", []edit{{"pass_fuel.go", "run.tested = run.tested || run.before.work+run.work > maxWork ||", "run.tested = run.tested ||"}}},
	{"functions do not test where they end", []edit{{"pass_fuel.go", "	if p.owes || b.counted && p.functions[b.index].Calls {", "	if false {"}, {"pass_fuel.go", "		p.runs[p.run].tested = true\n", ""}}},
	{"only functions with loops test where they end", []edit{{"pass_fuel.go", "		p.runs[p.run].tested = true\n", ""}}},
	{"functions with loops that call others do not test where they end", []edit{{"pass_fuel.go", "	if p.owes || b.counted && p.functions[b.index].Calls {", "	if p.owes {"}}},
	{"a callee is taken to have tested last of all", []edit{{"pass_fuel.go", "!run.calls\n		run.calls, run.owes = true, true", "!run.calls\n		run.calls = true"}, {"pass_fuel.go", "fuelWay{0, true}", "fuelWay{0, run.owes}"}}},
	{"each function on the stack may do a little without a test", []edit{{"pass_fuel.go", "case !p.way.owes || p.way.work == 0:", "case !p.way.owes || p.way.work <= 64:"}}},
	{"a call through a table is taken to have tested last of all", []edit{{"pass_fuel.go", "		run.work += leafUnits\n		run.calls, run.owes = true, true\n", "		run.work += leafUnits\n		run.calls = true\n"}}},
	{"what stands behind a call is charged before it", []edit{{"pass_fuel.go", "	}\n	p.split(b, in)\n}\n\nfunc (p *fuelPass) loop", "	}\n	p.shorten(b, in)\n}\n\nfunc (p *fuelPass) loop"}}},
	{"what was owed before a run is forgotten", []edit{{"pass_fuel.go", "run.before.owes || run.owes}", "run.owes}"}}},
	{"what is owed on one of two ways is forgotten", []edit{{"pass_fuel.go", "w.owes || o.owes}", "w.owes && o.owes}"}}},
	{"an end after a call is not seen", []edit{{"pass_fuel.go", "		p.recordEnd(b)\n		p.run = noRun\n", "		p.run = noRun\n"}}},
	{"a branch to the end after a call is not seen", []edit{{"pass_fuel.go", "		p.recordEnd(b)\n		return\n", "		return\n"}}},
	{"operations are done at once", []edit{{"pass_bulk.go", "	case takesLength(in.opcode):\n		b.replace", "	case false:\n		b.replace"}}},
	{"memory.copy goes in the wrong direction", []edit{{"pass_bulk.go", "at(opLocalGet, bulkFrom).do(opI32LeU)", "at(opLocalGet, bulkFrom).do(opI32GtU)"}}},
	{"pieces of operations are not tested", []edit{{"pass_bulk.go", "	w.meter.charge(&w.encoder, maxWork)\n	w.meter.test(&w.encoder)\n", "	w.meter.charge(&w.encoder, maxWork)\n"}}},
	{"pieces of operations are long", []edit{{"pass_bulk.go", "maxWork<<bytesPerUnit", "maxWork<<(bytesPerUnit+1)"}}},
	{"ends of operations are not checked", []edit{{"pass_bulk.go", "	w.check()\n", ""}}},
	{"ends beyond 32 bits are not noticed", []edit{{"pass_bulk.go", "	w.overflow(bulkTo)\n", ""}}},
	{"memory.grow is free", []edit{{"pass_bulk.go", "		b.insert(in.at, p.grow)\n", ""}}},
	{"elements cost what 16 bytes do", []edit{{"pass_bulk.go", "	case opMemoryInit, opMemoryCopy, opMemoryFill:\n		w.perUnit", "	default:\n		w.perUnit"}}},
	{"globals are not led to where they have moved", []edit{{"pass_meter.go", "return index + r.globalShift", "return index"}}},
	{"references are not led to where functions have moved", []edit{{"rewrite_body.go", "index := d.r.moved(before)", "index := before"}}},
}

// oneFaultIn says which mistakes TestFaultsAreProved makes: each by default, or the first of so many.
var oneFaultIn = flag.Int("one-fault-in", 1, "make the first of `N` mistakes")

// TestFaultsAreProved: the verifier alone notices each mistake, in modules as they come.
func TestFaultsAreProved(t *testing.T) {
	require.GreaterOrEqual(t, len(faults), 20)
	require.NoError(t, testWith(t, nil, proofs...), "the control: without a mistake all is proved")
	for i, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for n := range f.edits {
				f.edits[n].File = "runtime/internal/wasm/" + f.edits[n].File
			}
			if i%*oneFaultIn != 0 {
				overlaid(t, f.edits)
				return
			}
			err := testWith(t, f.edits, proofs...)
			require.Error(t, err)
			assert.ErrorContains(t, err, "metering not proved")
			assert.NotContains(t, err.Error(), "panic", "it is Verify that has to notice")
			t.Log(firstLine(err.Error(), "metering not proved"))
		})
	}
}

// TestFaultsOfOld: with the hole, the verifier refuses the programs that got away. Without the
// verifier, too, random programs get away.
func TestFaultsOfOld(t *testing.T) {
	old := readTogether(t)
	err := testWith(t, old.Hole, proofs...)
	require.Error(t, err)
	for _, name := range []string{"endless behind a call", "endless behind a read", "endless as a start function"} {
		assert.ErrorContains(t, err, "Messages:   \t"+name)
	}
	assert.NotContains(t, err.Error(), "panic")

	programs := []string{"-run", "^TestEndlessPrograms$", "../../engine", "-programs", "500"}
	err = testWith(t, append(old.Hole, old.Unverified...), programs...)
	require.Error(t, err)
	assert.ErrorContains(t, err, "did not come back")
	t.Log(firstLine(err.Error(), "did not come back"))
}

// proofs are the arguments of go test that have modules proved.
var proofs = []string{"-run", "^TestPassesAreProved$", "."}

// overlaid writes edits of the product, of which each must have its place, and returns the argument of -overlay.
func overlaid(t *testing.T, edits []edit) string {
	var all []overlay.Edit
	for _, e := range edits {
		all = append(all, overlay.Edit(e))
	}
	path, err := overlay.Write(t.TempDir(), filepath.Join("..", "..", "..", ".."), all)
	require.NoError(t, err)
	return path
}

// testWith runs tests with edits of the product. Its error is their output.
func testWith(t *testing.T, edits []edit, arguments ...string) error {
	path := overlaid(t, edits)
	command := exec.CommandContext(t.Context(), "go", append([]string{"test", "-overlay", path, "-count=1", "-vet=off", "-ldflags=-s"}, arguments...)...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := command.CombinedOutput()
	if err != nil {
		return &testFailure{string(out)}
	}
	return nil
}

type testFailure struct{ output string }

func (f *testFailure) Error() string { return f.output }

func firstLine(text, with string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, with) {
			return strings.TrimSpace(line)
		}
	}
	return text
}

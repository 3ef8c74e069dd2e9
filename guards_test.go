//go:build faults && linux

package caisson_test

import (
	"flag"
	"fmt"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/overlay"
)

// guardFault removes a guard.
type guardFault struct {
	name   string
	pkg    string // of the attack's test
	attack string // the test that fails then, and optionally its subtests
	edits  []overlay.Edit
	hangs  bool // the attack keeps the test from ending
}

// guardFaults are controls for attacks whose tests have none, or one that does not involve the guard.
var guardFaults = []guardFault{
	{name: "a full directory is counted only up to its quota", pkg: "hostfuncs/files", attack: "TestRemovalsDoNotWalkAgain",
		edits: in("hostfuncs/files/tracker.go", "bound: doubled(quota)", "bound: quota")},
	{name: "links lead down any number of directories", pkg: "hostfuncs/files", attack: "TestAttackDeepPaths",
		edits: in("hostfuncs/files/resolve.go", "const maxElements = maxDepth + 16", "const maxElements = guestfiles.MaxPath")},
	{name: "waiting for other calls never ends", pkg: "hostfuncs/files", attack: "TestWaitingForOthersEnds", hangs: true,
		edits: in("hostfuncs/files/tracker.go", "	case <-ctx.Done():\n		return ctx.Err()\n", "")},
	{name: "a walk continues after its call", pkg: "hostfuncs/files", attack: "TestAttackLongLooks/a_walk_before_a_change",
		edits: in("hostfuncs/files/tracker.go", "if err := w.ctx.Err(); err != nil {", "if err := w.ctx.Err(); err != nil && false {")},
	{name: "a listing continues after its call", pkg: "hostfuncs/files", attack: "TestAttackLongLooks/a_listing",
		edits: in("hostfuncs/files/dir.go", "if err := p.view.ctx.Err(); err != nil {", "if err := p.view.ctx.Err(); err != nil && false {")},

	{name: "the count ignores other processes", pkg: "hostfuncs/files", attack: "TestAttackQuotaOfSeveralProcesses",
		edits: in("hostfuncs/files/lock_unix.go", "return l.take(), nil", "return false, nil")},
	{name: "marks of sticky directories are believed", pkg: "hostfuncs/files", attack: "TestAttackQuotaOfAStickyDirectory",
		edits: in("hostfuncs/files/lock_unix.go", "sticky := l.isSticky()", "sticky := false")},
	{name: "processes change a directory at once", pkg: "hostfuncs/files", attack: "TestAttackKilledProcess",
		edits: in("hostfuncs/files/lock_unix.go", "unix.LOCK_EX|unix.LOCK_NB", "unix.LOCK_SH|unix.LOCK_NB")},
	{name: "files without a name are free", pkg: "hostfuncs/files", attack: "TestStoresShareADirectory",
		edits: in("hostfuncs/files/tracker.go", "w.bytes+t.orphaned(), w.files", "w.bytes, w.files")},

	{name: "what a script imports is left out", pkg: "hostfuncs/files", attack: "TestInterpretersAreLeftOut",
		edits: in("hostfuncs/files/phase.go", "v.within != nil && v.within.Tree != nil && denialOf(err) == nil", "true")},
	{name: "an interpreter may load itself from granted files unseen", pkg: "hostfuncs/files", attack: "TestInterpretersAreLeftOut",
		edits: in("hostfuncs/files/phase.go", "if m.isGranted() || ", "if ")},
	{name: "programs of closed tools are started", pkg: "runtime", attack: "TestAttackStartsOfClosedTools",
		edits: in("runtime/program.go", "		p.stop()\n	}\n	p.mu.Unlock()\n", "	}\n	p.mu.Unlock()\n")},
	{name: "starts have the context of a call", pkg: "runtime", attack: "TestAttackKeptCalls",
		edits: in("runtime/program.go", "	if started, before, made := t.program.get(", "	t.runtime.base = context.WithoutCancel(ctx)\n	if started, before, made := t.program.get(")},
	{name: "modules are read in the context of a call", pkg: "runtime", attack: "TestAttackKeptReaders",
		edits: in("runtime/flights.go", "context.WithCancel(base)", "context.WithCancel(context.WithoutCancel(ctx))")},
	{name: "modules are compiled in the context of a call", pkg: "runtime/internal/engine", attack: "TestAttackKeptCallers",
		edits: in("runtime/internal/engine/engine.go", "	c, err := e.Begin(source, accept)", "	e.base = context.WithoutCancel(ctx)\n	c, err := e.Begin(source, accept)")},
	{name: "programs keep their first instance", pkg: "runtime", attack: "TestAttackKeptInstances",
		edits: in("runtime/internal/wasi/start.go", "	s.call = call{}\n", "")},
	{name: "programs keep the last instance that was started", pkg: "runtime", attack: "TestAttackKeptInstances",
		edits: in("runtime/program.go", "l.first.CompareAndSwap(nil, system)", "l.first.Store(system)")},
	{name: "arrays of 4 GiB have no length", pkg: "runtime/internal/wasi", attack: "TestAttackCountsThatOverflow",
		edits: in("runtime/internal/wasi/functions.go", "if uint64(count)*8 > math.MaxUint32 {", "if uint64(count)*8 > math.MaxUint32+1 {")},
	{name: "the packages of all tools have any length", pkg: "runtime", attack: "TestAttackManyPackages",
		edits: in("runtime/module.go", "if err := r.scripts.Hold(s.Tree); err != nil {", "if err := r.scripts.Hold(s.Tree); err != nil && false {")},
	{name: "notes hide denials", pkg: "internal/journal", attack: "TestNotesHideNoDenials",
		edits: in("internal/journal/journal.go", "if notes > MaxDenials/2 {", "if false {")},

	{name: "saved stacks of idle instances do not count", pkg: "runtime/internal/engine", attack: "TestAttackIdleMemory/a_started_program_with_a_deep_stack",
		edits: in("runtime/internal/engine/held.go", " + i.savedStacks()", "")},
	{name: "tables of idle instances do not count", pkg: "runtime/internal/engine", attack: "TestAttackIdleMemory/a_table_of_functions",
		edits: in("runtime/internal/engine/held.go", "instanceBytes + i.heap + stacks", "instanceBytes + stacks")},
	{name: "the holes of images are mapped", pkg: "runtime/internal/engine", attack: "TestAttackImageFills",
		edits: in("runtime/internal/engine/image_linux.go", "for _, span := range i.file.spans {\n		if err == nil {", "for _, span := range allOf(i.memory) {\n		if err == nil {")},
	{name: "a program's image does not replace the module's", pkg: "runtime/internal/engine", attack: "TestAttackFilledHolesOfPrograms",
		edits: in("runtime/internal/engine/image_linux.go", "if earlier == nil {", "if true {")},
	{name: "idle instances have any number of mappings", pkg: "runtime/internal/engine", attack: "TestAttackManyMappings",
		edits: in("runtime/internal/engine/pool.go", " || p.mapped > mostMappings", "")},
	{name: "images have any number of mappings", pkg: "runtime/internal/engine", attack: "TestAttackManyMappings",
		edits: in("runtime/internal/engine/residents.go", " || h.mappings > limits.mappings", "")},
	{name: "long comparisons do not look at their context", pkg: "runtime/internal/engine", attack: "TestAttackLongComparisons",
		edits: in("runtime/internal/engine/program.go", "		if ctx.Err() != nil {\n			return &NotStartedError", "		if false {\n			return &NotStartedError")},
	{name: "images have as many mappings as data has places", pkg: "runtime/internal/engine", attack: "TestAttackScatteredData",
		edits: in("runtime/internal/engine/image_linux.go", "mostSpans     = 64", "mostSpans     = 1 << 20")},
	{name: "guests have memory at addresses that wazero takes for negative", pkg: "runtime/internal/engine", attack: "TestAttackConstantAddresses",
		edits: in("runtime/internal/engine/assemble.go", "limit: min(limit, maxMemory)", "limit: limit")},
	{name: "images are filled however far apart data is", pkg: "runtime/internal/engine", attack: "TestAttackDataFarApart",
		edits: in("runtime/internal/engine/image_linux.go", "mostFilledGap = 1 << 20", "mostFilledGap = 1 << 40")},
	{name: "memories have large pages where the system likes", pkg: "runtime/internal/engine", attack: "TestAttackLargePages",
		edits: in("runtime/internal/engine/memory_linux.go", "unix.MADV_NOHUGEPAGE", "unix.MADV_NORMAL")},
	{name: "calls wait until the system has taken back their memory", pkg: "runtime/internal/engine", attack: "TestAttackMuchWritten", hangs: true,
		edits: in("runtime/internal/engine/instance.go", "i.survey() < muchWritten ||", "i.survey() >= 0 ||")},
	{name: "calls wait until evicted modules are freed", pkg: "runtime/internal/engine", attack: "TestAttackLargeEvictions", hangs: true,
		edits: in("runtime/internal/engine/residents.go", "all.bytes < muchWritten && ", "")},
	{name: "any number of instances is retired in the background", pkg: "runtime/internal/engine", attack: "TestAttackMuchWritten", hangs: true,
		edits: in("runtime/internal/engine/residents.go", "	default:\n		return false\n", "")},
	{name: "images do not count", pkg: "runtime/internal/engine", attack: "TestImagesCountWithTheirModules",
		edits: in("runtime/internal/engine/assemble.go", "		m.count(m.image.holding()) //", "		//")},
	{name: "images of programs do not count", pkg: "runtime/internal/engine", attack: "TestImagesCountWithTheirModules",
		edits: in("runtime/internal/engine/program.go", "	p.residence.held = p.image.holding()\n", "")},
	{name: "what stands behind a call is charged before it", pkg: "runtime/internal/engine", attack: "TestAttackWorkThatIsPaidFor", edits: paidBefore},
	{name: "what stands behind the first read is charged before it", pkg: "runtime", attack: "TestAttackFuelPaidInTheStart", edits: paidBefore},
	{name: "stacks are saved whatever their size", pkg: "runtime", attack: "TestAttackLargeStacksOfStarts", hangs: true,
		edits: in("runtime/internal/engine/snapshot.go", "if len(inUse) > mostSavedStack {", "if len(inUse) < 0 {")},
	{name: "values that calls, branches and the ends of blocks move are free", pkg: "runtime/internal/engine", attack: "TestAttackUnitsThatMove/branch_that_assigns",
		edits: []overlay.Edit{
			{File: "runtime/internal/wasm/moves.go", Old: "const movesPerUnit = 128", New: "const movesPerUnit = 1 << 40"},
			{File: "runtime/internal/wasm/metered/moves.go", Old: "const movesPerUnit = 128", New: "const movesPerUnit = 1 << 40"},
		}},
	{name: "what blocks move where they end is free", pkg: "runtime/internal/engine", attack: "TestAttackUnitsThatMove/of_block_nested",
		edits: []overlay.Edit{
			{File: "runtime/internal/wasm/pass_fuel.go", Old: "		p.move(top.moves + joinValues)\n", New: ""},
			{File: "runtime/internal/wasm/metered/body.go", Old: "			b.move(top.moves + joinValues)\n", New: ""},
		}},
	{name: "ends of blocks where paths join are free", pkg: "runtime/internal/engine", attack: "TestAttackUnitsThatMove/ends_of_blocks",
		edits: []overlay.Edit{
			{File: "runtime/internal/wasm/moves.go", Old: "const joinValues = 32", New: "const joinValues = 0"},
			{File: "runtime/internal/wasm/metered/moves.go", Old: "const joinValues = 32", New: "const joinValues = 0"},
		}},
	{name: "selects of numbers stay as they are", pkg: "runtime/internal/engine", attack: "TestAttackSelects",
		edits: []overlay.Edit{
			{File: "runtime/internal/wasm/replacing.go", Old: "		r.set(firstI32).do(opI64ReinterpretF64)\n" +
				"		r.set(secondI64).do(opI64ReinterpretF64)\n" +
				"		r.get(secondI64, firstI32).selects(I64).do(opF64ReinterpretI64)", New: "		r.selects(F64)"},
			{File: "runtime/internal/wasm/metered/body.go", Old: "t.a != typeI32 && t.a != typeI64", New: "t.a == 0"},
		}},
	{name: "selects of numbers are not refused", pkg: "runtime/internal/wasm/metered", attack: "TestSelectsNameTheirType",
		edits: in("runtime/internal/wasm/metered/body.go", "t.a != typeI32 && t.a != typeI64", "t.a == 0")},
	{name: "instructions that need many registers stay as they are", pkg: "runtime/internal/engine", attack: "TestAttackManyRegisters",
		edits: []overlay.Edit{
			{File: "runtime/internal/wasm/validate_body.go", Old: "kind := in.miscompiledKind(); kind != sound", New: "kind := in.miscompiledKind(); kind < sound"},
			{File: "runtime/internal/wasm/metered/body.go", Old: "if t.isMiscompiled() {", New: "if t.isMiscompiled() && t.op < 0 {"},
		}},
	{name: "instructions that need many registers stay as they are in random modules", pkg: "runtime/internal/engine", attack: "TestMiscompiledSeeds",
		edits: []overlay.Edit{
			{File: "runtime/internal/wasm/validate_body.go", Old: "kind := in.miscompiledKind(); kind != sound", New: "kind := in.miscompiledKind(); kind < sound"},
			{File: "runtime/internal/wasm/metered/body.go", Old: "if t.isMiscompiled() {", New: "if t.isMiscompiled() && t.op < 0 {"},
		}},
	{name: "instructions that need many registers are not refused", pkg: "runtime/internal/wasm/metered", attack: "TestMiscompiledAreRefused",
		edits: in("runtime/internal/wasm/metered/body.go", "if t.isMiscompiled() {", "if t.isMiscompiled() && t.op < 0 {")},
	{name: "host functions return more bits than their results have", pkg: "runtime/internal/engine", attack: "TestAttackWideResults",
		edits: in("runtime/internal/engine/run.go", "stack[n] = uint64(uint32(stack[n]))", "stack[n] += 0")},
	{name: "processors without lzcnt are accepted", pkg: "runtime/internal/engine", attack: "TestProcessorsWithoutCounts",
		edits: in("runtime/internal/engine/processor.go", "!(bmi1 && bmi2 && popcnt)", "!(bmi1 || bmi2 || popcnt)")},
	{name: "negative numbers are read as positive ones", pkg: "runtime/internal/engine", attack: "TestDispatchIsExact",
		edits: in("runtime/internal/wasm/reader.go", "unused := 64 - min(bits, 64); signed {", "unused := 64 - min(bits, 64); signed && false {")},
	{name: "comparisons of masks stay as they are", pkg: "runtime/internal/engine", attack: "TestComparisonsOfMasks",
		edits: in("runtime/internal/wasm/miscompiled.go", "second.and && first.constant != otherConstant", "false")},
	{name: "comparisons of masks in locals stay as they are", pkg: "runtime/internal/engine", attack: "TestComparisonsOfMasks",
		edits: in("runtime/internal/wasm/joins.go", "local.and = local.and || from.and", "local.and = false")},
	{name: "a proof walks a body once for each of its loops", pkg: "runtime/internal/wasm/metered", attack: "TestAttackNestedLoops",
		edits: in("runtime/internal/wasm/metered/verify.go", "const exactRounds = 8", "const exactRounds = 1 << 30")},
	{name: "operands on the stack are not counted at blocks", pkg: "runtime/internal/engine", attack: "TestAttackSlowJoins/operands",
		edits: in("runtime/internal/wasm/validate_body.go", "int64(locals) + b.carried", "int64(locals)")},
	{name: "loops begin for free", pkg: "runtime/internal/engine", attack: "TestAttackUnitsThatMove/loops_in_a_row",
		edits: []overlay.Edit{
			{File: "runtime/internal/wasm/moves.go", Old: "const loopValues = 16", New: "const loopValues = 0"},
			{File: "runtime/internal/wasm/metered/moves.go", Old: "const loopValues = 16", New: "const loopValues = 0"},
		}},
	{name: "values may join on any number of paths", pkg: "runtime/internal/engine", attack: "TestAttackSlowJoins/a_loop_of_locals",
		edits: in("runtime/internal/wasm/bounds.go", "		JoinedValues:   2_000_000_000,\n", "")},
	{name: "any number of values may move to where paths join", pkg: "runtime/internal/engine", attack: "TestAttackSlowJoins/values_for_many_branches",
		edits: in("runtime/internal/wasm/bounds.go", "		JoinMoves:      300_000,\n", "")},
	{name: "any number of addresses may be known in any number of blocks", pkg: "runtime/internal/engine", attack: "TestAttackSlowJoins/addresses",
		edits: in("runtime/internal/wasm/bounds.go", "		KnownAddresses: 4_000_000,\n", "")},
	{name: "a function may call in a module of any number of globals", pkg: "runtime/internal/engine", attack: "TestAttackCostlyFunctions/calls_and_globals",
		edits: in("runtime/internal/wasm/bounds.go", "		CallGlobals:    1_000_000,\n", "")},
	{name: "loops add no calls", pkg: "runtime/internal/engine", attack: "TestAttackCostlyFunctions/loops_and_globals",
		edits: in("runtime/internal/wasm/validate_body.go", " + 3*int64(b.found.Blocks)", "")},
	{name: "any number of shifts may be by nothing", pkg: "runtime/internal/engine", attack: "TestAttackCostlyFunctions/shifts_by_the_width",
		edits: in("runtime/internal/wasm/bounds.go", "`default:\"1_000\"` // shifts by", "// shifts by")},
	{name: "any number of loops", pkg: "runtime/internal/engine", attack: "TestAttackCostlyFunctions/loops_inside_one_another",
		edits: in("runtime/internal/wasm/bounds.go", "		Loops:          1_000,\n", "")},
	{name: "conversions that trap weigh as much as others", pkg: "runtime/internal/engine", attack: "TestAttackCostlyFunctions/conversions_that_trap",
		edits: in("runtime/internal/wasm/validate_body.go", "		return 40\n", "		return 1\n")},
	{name: "a function may move any number of values", pkg: "runtime/internal/engine", attack: "TestAttackCostlyFunctions/values_of_blocks",
		edits: in("runtime/internal/wasm/bounds.go", "		FunctionMoves:  500_000,\n", "")},
	{name: "compilations in this process are not looked at", pkg: "runtime/internal/engine", attack: "TestAttackEndlessCompilations/types_×_functions",
		edits: in("runtime/internal/engine/compiler.go", "experimental.WithCompilationWorkers(ctx, 2)", "experimental.WithCompilationWorkers(ctx, 1)")},
	{name: "functions are described in the first call that traps", pkg: "runtime/internal/engine", attack: "TestAttackFirstTrap",
		edits: in("runtime/internal/engine/build.go", "{ code.ImportedFunctions() }", "{}")},
	{name: "any number of functions and exports is described", pkg: "runtime/internal/engine", attack: "TestAttackManyExports",
		edits: in("runtime/internal/wasm/bounds.go", "FunctionExports int `default:\"1_000_000_000\"`", "FunctionExports int")},
	{name: "descriptions of functions do not count", pkg: "runtime/internal/engine", attack: "TestModulesCountWhatIsDecoded",
		edits: in("runtime/internal/engine/build.go", "elementByte, value = 300,", "elementByte, value = 120,")},
	{name: "names of functions do not count", pkg: "runtime/internal/engine", attack: "TestModulesCountWhatIsDecoded",
		edits: in("runtime/internal/engine/build.go", "+namesBytes(names)", "")},
	{name: "native code counts as estimated", pkg: "runtime/internal/engine", attack: "TestCodeCounts",
		edits: in("runtime/internal/engine/assemble.go", "if m.estimated > 0 {", "if m.estimated < 0 {")},
	{name: "any number of compilations runs at a time", pkg: "runtime/internal/engine", attack: "TestAttackManyCompilations",
		edits: append(in("runtime/internal/engine/build.go", "	case e.compiling <- struct{}{}:\n		return nil\n", "	default:\n		return nil\n"),
			in("runtime/internal/engine/build.go", "leaveCompiler() { <-e.compiling }", "leaveCompiler() {}")...)},
	{name: "refused modules are compiled again in each call", pkg: "runtime/internal/engine", attack: "TestAttackRepeatedCompilations",
		edits: in("runtime/internal/engine/engine.go", "; errors.Is(c.err, ErrModule) {", "; errors.Is(c.err, ErrModule) && false {")},
	{name: "ended calls make instances", pkg: "runtime/internal/engine", attack: "TestAttackInstancesOfEndedCalls",
		edits: in("runtime/internal/engine/assemble.go", "if err := contextError(ctx, \"instantiate\"); err != nil {", "if err := contextError(ctx, \"instantiate\"); err != nil && false {")},
	{name: "libraries pass on any number of imports", pkg: "runtime/internal/engine", attack: "TestAttackReexports",
		edits: in("runtime/internal/wasm/link.go", "const maxSearched = 1_000_000", "const maxSearched = 1 << 40")},
	{name: "calls wait for their program's start when they have ended", pkg: "runtime", attack: "TestAttackCancelledWhileStarting",
		edits: in("runtime/internal/engine/program.go", "			abandon(context.Cause(caller))\n", "")},
	{name: "instances with all of their memory are lost", pkg: "runtime", attack: "TestAttackFuelOfStarts/all_memory",
		edits: in("runtime/internal/engine/memory.go", "	case m.resizing:", "	case m.resizing && m.size < m.most:")},
	{name: "instances with deep stacks are lost", pkg: "runtime", attack: "TestAttackFuelOfStarts/a_deep_stack",
		edits: in("runtime/internal/engine/instance.go", "	mostResumedStack = 256 << 20", "	mostResumedStack = 1 << 20")},
	{name: "what callees do before they trap is free", pkg: "runtime", attack: "TestAttackUncountedFuel/it_traps",
		edits: in("runtime/internal/engine/instance.go", "		usage.Uncounted = wasm.TrapUnits\n", "		_ = wasm.TrapUnits\n")},
	{name: "what callees do beyond their fuel is free", pkg: "runtime", attack: "TestAttackUncountedFuel/it_has_little_fuel",
		edits: in("runtime/internal/engine/module.go", "	u.Uncounted += u.Fuel - left\n", "")},
	{name: "calls wait until many evicted modules are freed", pkg: "runtime/internal/engine", attack: "TestAttackManyEvictions", hangs: true,
		edits: in("runtime/internal/engine/residents.go", " && len(surplus) <= mostFreed", "")},
	{name: "programs are evicted with their modules alone", pkg: "runtime/internal/engine", attack: "TestProgramsAreEvicted",
		edits: in("runtime/internal/engine/residents.go", "of := at.Value.(*residence); of.users == 0", "of := at.Value.(*residence); of.users == 0 && of.program == nil")},
	{name: "programs are freed while they run", pkg: "runtime/internal/engine", attack: "TestDropWhileRunning/a_command",
		edits: in("runtime/internal/engine/program.go", "if of.dropped = of.users > 0; of.dropped {", "if of.dropped = false; of.dropped {")},
	{name: "images have any number of files", pkg: "runtime/internal/engine", attack: "TestAttackImageFiles",
		edits: in("runtime/internal/engine/residents.go", " || h.files > limits.files", "")},
	{name: "calls that have ended wait for a module's file", pkg: "runtime", attack: "TestAttackCallsThatWaitForAModule", hangs: true,
		edits: in("runtime/flights.go", "	case <-ctx.Done():\n		s.leave(run)\n		var none T\n		return none, notRead(ctx)\n", "")},
	{name: "any number of modules is read at once", pkg: "runtime", attack: "TestAttackManyReaders", hangs: true,
		edits: in("runtime/module.go", "	case r.modules <- struct{}{}:\n		return nil\n", "	default:\n		return nil\n")},
	{name: "calls that have ended stay in the queue of readers", pkg: "runtime", attack: "TestAttackManyReaders",
		edits: in("runtime/flights.go", "		run.abandon()\n		s.forget(run)", "		s.forget(run)")},
	{name: "the time of a start does not include making its instance", pkg: "runtime/internal/engine", attack: "TestStartsEndWhileAnInstanceIsMade",
		edits: in("runtime/internal/engine/program.go", "p.module.instantiate(ctx, uint64(p.start.MemoryLimit))", "p.module.instantiate(caller, uint64(p.start.MemoryLimit))")},
	{name: "any number of large instances is made at once", pkg: "runtime/internal/engine", attack: "TestAttackManyInstancesAtOnce",
		edits: in("runtime/internal/engine/assemble.go", "	if !m.manyItems {\n", "	if true {\n")},
	{name: "nothing is seen of starts", pkg: "runtime/internal/engine", attack: "TestStartsAreObserved",
		edits: in("runtime/internal/engine/program.go", "meter{limit: fuel}, watched", "meter{limit: fuel}, nil")},
	{name: "starts are judged by the clock alone", pkg: "runtime/internal/watchdog", attack: "TestBusyMachineMakesNoRunaway",
		edits: in("runtime/internal/watchdog/watchdog.go", "!engine.MeasuresThreads || g.Function()", "!engine.MeasuresThreads || g.Ctx == nil || g.Function()")},
	{name: "a start that had too little time once is not repeated", pkg: "runtime", attack: "TestStartsOnABusyMachine",
		edits: in("runtime/program.go", "if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, engine.ErrHost) {", "if false {")},
	{name: "programs that calls cannot resume stay", pkg: "runtime", attack: "TestProgramsThatDifferAreFreed",
		edits: in("runtime/program.go", "		if t.program.discard(started, err) {\n			t.drop(ctx, started)\n		}\n", "		t.program.discard(started, err)\n")},
	{name: "rewriting makes any amount of code", pkg: "runtime/internal/wasm", attack: "TestBoundsAreExact/RewrittenCode",
		edits: in("runtime/internal/wasm/rewrite_body.go", "case all > bounds.RewrittenCode:", "case all > bounds.RewrittenCode && false:")},
	{name: "modules have any amount of native code", pkg: "runtime/internal/engine", attack: "TestAttackNativeCode",
		edits: in("runtime/internal/engine/build.go", "err := e.checkSize(int64(len(text)))", "err := error(nil)")},
	{name: "caches have any amount of native code", pkg: "runtime/internal/engine", attack: "TestAttackNativeCode",
		edits: in("runtime/internal/engine/build.go", "if err := e.checkSize(i.Code.Bytes); err != nil {", "if err := e.checkSize(0); err != nil {")},
	{name: "modules are rewritten without waiting for others", pkg: "runtime/internal/engine", attack: "TestAttackRewritesAtOnce",
		edits: in("runtime/internal/engine/build.go", "	if err := e.enterCompiler(ctx); err != nil {\n		return buildResult{}, err\n	}\n	defer e.leaveCompiler()\n", "")},
	{name: "long stacks of start functions stay", pkg: "runtime/internal/engine", attack: "TestAttackStacksOfStartFunctions",
		edits: in("runtime/internal/engine/instance.go", "!known || bytes > mostStartStack", "!known && bytes > mostStartStack")},
	{name: "calls that have ended wait for an image", pkg: "runtime/internal/engine", attack: "TestAttackCallsThatWaitForAnImage",
		edits: in("runtime/internal/engine/assemble.go", "	case <-ctx.Done(): // while another call makes the image\n		return contextError(ctx, \"instantiate\")\n", "")},
	{name: "calls do not pay for the start that they wait for", pkg: "runtime/internal/engine", attack: "TestRunsPayForTheirStart",
		edits: in("runtime/internal/engine/instance.go", "meter{limit: r.Fuel, granted: r.Started}", "meter{limit: r.Fuel}")},
	{name: "programs whose start takes more than a call may are resumed", pkg: "runtime", attack: "TestAttackFuelOfStarts/too_little_fuel",
		edits: in("runtime/program.go", "min(startFuel, cmp.Or(t.limits.Fuel, startFuel))", "cmp.Or[int64](startFuel)")},
	{name: "each library may take the whole stack", pkg: "runtime/internal/engine", attack: "TestAttackStacksOfLibraries/small_functions,_libraries:_4",
		edits: in("runtime/internal/engine/rewrite.go", "wasm.DefaultStackBytes / int64(1+in.libraries)", "wasm.DefaultStackBytes")},

	{name: "a validation continues after its context", pkg: "internal/schema", attack: "TestValidationsEndWithTheirContext/a_list_with_a_misfit",
		edits: unlooked},
	{name: "a result is checked after its call has ended", pkg: "runtime", attack: "TestAttackResultsThatTakeLongToCheck/a_match_of_a_misfit/16",
		edits: unlooked},
	{name: "addresses of schemas have any length", pkg: "internal/schema", attack: "TestAttackLongAddresses",
		edits: in("internal/schema/reference.go", "if len(address) > maxAddressBytes || len(resolved.String()) > maxAddressBytes {", "if len(address) < 0 {")},
	{name: "a long match is made in one go", pkg: "internal/schema", attack: "TestValidationsLookAtTheirContextOften/a_match",
		edits: in("internal/schema/pattern.go", "if cost <= shortMatch {", "if cost >= 0 {")},
	{name: "a tool's arguments are checked when its caller has ended", pkg: "executor", attack: "TestAttackArgumentsThatTakeLongToCheck/that_are_short/16",
		edits: unlooked},
	{name: "the watchdog ignores guests while the host plans their calls", pkg: "runtime", attack: "TestGuestsAreWatchedWhileTheHostPlans/the_host_plans",
		edits: in("runtime/internal/watchdog/watchdog.go", "	g.calls.Add(-1)\n	return", "	g.calls.Add(0)\n	return")},
	{name: "brought tools have patterns of any size together", pkg: "executor", attack: "TestAttackPatternsOfBroughtTools",
		edits: in("executor/request.go", "patterns > schema.MaxPatterns {", "patterns > 128*schema.MaxPatterns {")},
	{name: "a tenant plans in all places", pkg: "executor", attack: "TestAttackTurnsOfBroughtTools",
		edits: in("executor/batch.go", "own := max(1, places/2)", "own := places")},
	{name: "calls of brought tools share no work", pkg: "executor", attack: "TestAttackChecksByBroughtSchemas",
		edits: in("executor/arguments.go", "ctx = c.batch.checks.With(ctx)", "_ = c.batch.checks.With")},
	{name: "repairs share no work", pkg: "executor/internal/repair", attack: "TestAttackSharedWork",
		edits: in("executor/internal/repair/walk.go", "return schema.Spend(w.ctx, work/workPerUnit)", "return work >= 0")},
	{name: "batches keep compiled schemas", pkg: "executor", attack: "TestAttackKeptSchemas",
		edits: in("executor/request.go", "*m = manifests.Manifest{", "_ = manifests.Manifest{")},
	{name: "states in memory leave claims", pkg: "executor", attack: "TestAttackClaimsOfResumedBatches",
		edits: in("executor/internal/pause/claims.go", "	if h == nil {\n", "	if true {\n")},
	{name: "states that are written later are not claimed", pkg: "executor", attack: "TestAttackStateIsWritten/after",
		edits: in("executor/internal/pause/claims.go", "if !h.written && h.claim != nil {", "if false {")},
	{name: "ranges of patterns are copied", pkg: "internal/schema", attack: "TestAttackCopiedRanges",
		edits: in("internal/schema/pattern.go", `regexp.Compile("(" + source + ")")`, "regexp.Compile(source)")},
	{name: "patterns are parsed although they are too large", pkg: "internal/schema", attack: "TestAttackLargePatterns/class",
		edits: in("internal/schema/pattern.go", "	if size > limit {", "	if false {")},
	{name: "Unicode classes of patterns take nothing", pkg: "internal/schema", attack: "TestAttackLargePatterns/classes",
		edits: in("internal/schema/pattern.go", "size := unicodeClass * (", "size := 0 * unicodeClass * (")},
	{name: "ranges of patterns without case take nothing", pkg: "internal/schema", attack: "TestAttackLargePatterns/far",
		edits: in("internal/schema/pattern.go", "if !foldsCase(source) {", "if foldsCase(source) || true {")},
	{name: "patterns are compiled however large they become", pkg: "internal/schema", attack: "TestAttackLargePatterns/repetition",
		edits: in("internal/schema/pattern.go", "count > 4*maxProgram {", "count < 0 {")},
	{name: "patterns are compiled again for their form", pkg: "internal/schema", attack: "TestAttackCopiedRanges",
		edits: in("internal/schema/meta.go", ", keyword == \"pattern\":", ":")},
	{name: "closed objects look at any number of schemas", pkg: "manifests", attack: "TestAttackManyClosedObjects",
		edits: in("manifests/possible.go", "p.left < 0 {", "p.left < -1<<40 {")},
	{name: "schemas of one value take no work", pkg: "executor/internal/repair", attack: "TestAttackManySchemasOfOneValue",
		edits: in("executor/internal/repair/walk.go", "w.work += placeWork *", "w.work += 0 *")},
	{name: "planning of calls is not announced", pkg: "executor", attack: "TestPlanningIsSaid",
		edits: in("executor/nested.go", "	ended := planning.Begin(ctx)\n", "	ended := func() { _ = planning.Begin }\n")},

	{name: "answers are masked when their call has ended", pkg: "hostfuncs/network", attack: "TestAttackAnswersThatTakeLongToMask",
		edits: in("hostfuncs/network/answer.go", "body, err = e.client.secrets.MaskFirst(e.ctx, whole, kept)", "body = e.client.secrets.Mask(whole[:kept])")},
	{name: "any number of long texts is masked at once", pkg: "hostfuncs/secrets", attack: "TestAttackManyLongTexts",
		edits: in("hostfuncs/secrets/set.go", "if len(text) <= masking.Stretch {", "if len(text) >= 0 {")},

	{name: "secrets are put into bodies of any length", pkg: "hostfuncs/secrets", attack: "TestAttackLongBodies",
		edits: in("hostfuncs/secrets/inject.go", "case len(body) > maxFilled:", "case false:")},
	{name: "secrets are put into as many bodies at a time as there are", pkg: "hostfuncs/secrets", attack: "TestAttackLongBodies",
		edits: in("hostfuncs/secrets/inject.go", "enter(request.Context(), body)", "enter(request.Context(), nil)")},
	{name: "bodies are copied at once", pkg: "runtime/internal/abi", attack: "TestBodiesAreCopiedWhileThereIsTime",
		edits: in("runtime/internal/abi/work.go", " && ctx.Err() == nil {", " {")},
	{name: "long bodies are copied all at a time", pkg: "runtime/internal/abi", attack: "TestLongBodiesTakeTurns",
		edits: in("runtime/internal/abi/work.go", "if len(bytes) <= copied {", "if true {")},
	{name: "bodies of refused requests are copied", pkg: "runtime/internal/abi", attack: "TestAttackRefusedBodies",
		edits: in("runtime/internal/abi/net.go", "	if err := c.checkBody(r, len(body)); err != nil {\n		return network.Request{}, err\n	}\n", "")},
	{name: "scripts get room for refused bodies", pkg: "runtime/internal/abi", attack: "TestAttackRefusedBodies",
		edits: in("runtime/internal/abi/invoke.go", "err = c.checkBody(head, int(body))", "_ = head")},
	{name: "refused bodies of scripts are kept", pkg: "runtime/internal/wasi", attack: "TestAttackRefusedBodies",
		edits: in("runtime/internal/wasi/device.go", "	if h.refused == nil {\n", "	if true {\n")},
	{name: "refused bodies of plug-ins are copied", pkg: "runtime/internal/extism", attack: "TestAttackRefusedBodies",
		edits: in("runtime/internal/extism/functions.go", "Check(c.ctx, r, len(body)); err != nil {", "Check(c.ctx, r, len(body)); false {")},
	{name: "plug-ins copy long bodies all at a time", pkg: "runtime", attack: "TestAttackRefusedBodies",
		edits: in("runtime/plugin.go", " Work: r.tool.runtime.work,", "")},
	{name: "bodies are copied although no bytes are left", pkg: "hostfuncs/network", attack: "TestCheck",
		edits: in("hostfuncs/network/session.go", "failed = s.keep(body)", "failed = nil")},
	{name: "bodies are copied when no requests are left", pkg: "hostfuncs/network", attack: "TestCheck/no_requests_left",
		edits: in("hostfuncs/network/session.go", "if s.Journal.Count() >= int64(s.limits.Calls) {", "if false {")},
	{name: "an array is read for each template", pkg: "internal/modules", attack: "TestAttackArrayInManyTemplates",
		edits: in("internal/modules/arguments.go", "		e.lists[part.param] = values\n", "")},
	{name: "a result has any number of parts", pkg: "runtime/internal/answer", attack: "TestAttackManyParts",
		edits: in("runtime/internal/answer/content.go", "Values: maxParts + 1", "Values: len(list) + 1")},

	{name: "cache entries of any file type are read", pkg: "runtime/internal/engine", attack: "TestAttackIrregularEntries/endless_device", hangs: true,
		edits: unchecked},
	{name: "files of any size are read", pkg: "runtime/internal/engine", attack: "TestAttackIrregularEntries/a_terabyte", hangs: true,
		edits: unchecked},
	{name: "the state folder may belong to another user", pkg: "internal/folder", attack: "TestAttackFolderOfOthers",
		edits: in("internal/hostfile/system_unix.go", "int(status.Uid) != os.Geteuid()", "int(status.Uid) != os.Geteuid() && false")},

	{name: "a module is settled for each profile by itself", pkg: "runtime", attack: "TestAttackSwappedModuleUnderAProfile",
		edits: in("runtime/tool.go", "if t.whole != nil {", "if t.whole != nil && false {")},
	{name: "grants for other modules hold", pkg: "runtime", attack: "TestEveryKindOfGrantIsBoundToAModule",
		edits: in("internal/permission/rule.go", "return b.SHA256 == \"\" || module != \"\" && b.SHA256 == module", "return true")},
	{name: "denials have no effect", pkg: "runtime/internal/permit", attack: "TestDecideFiles",
		edits: in("internal/permission/decide.go", "o.Effective = slices.DeleteFunc(o.Effective, covered)", "")},
	{name: "grants apply without a request", pkg: "hostfuncs/secrets", attack: "TestDecideSecrets",
		edits: in("internal/permission/decide.go", "both, overlap := request.Intersect(grant.Rule)", "both, overlap := grant.Rule, true")},
	{name: "letters other than ASCII are lower-cased", pkg: "internal/permission", attack: "TestParseHost",
		edits: in("internal/permission/host.go", "strings.Map(lowerASCII, text)", "strings.ToLower(text)")},

	{name: "names of headers are compared without regard to case alone", pkg: "hostfuncs/network", attack: "TestAttackHeaderInAnotherSpelling",
		edits: in("internal/permission/fold.go", "return '-'", "return r")},

	{name: "names of headers are compared with their punctuation", pkg: "hostfuncs/network", attack: "TestAttackHeaderWithMorePunctuation",
		edits: in("internal/permission/fold.go", "return strings.ReplaceAll(FoldName(name), \"-\", \"\")", "return FoldName(name)")},

	masking("the value as it is", "{reader: plain{}}, ", "", "/plain"),
	masking("percent-encoding", "{reader: escapes{'%', percent}}, ", "", "/percent"),
	masking("the escapes of JSON", ", {reader: escapes{'\\\\', jsonEscape}}", "", "/JSON"),
	masking("characters that take two escapes in JSON", "pair != utf8.RuneError {", "pair == 0 {", "beyond_ASCII/JSON"),
	masking("Base64", "{reader: newBase64()}, ", "", "/Base64"),
	masking("Base64 for URLs", "	a.characters['-'], a.characters['_'] = '+', '/'\n", "", "/Base64_for_URLs"),
	masking("Base64 behind other bytes", "before == 0 || 8*before%a.bits != 0;", "before == 0;", "/Base64_behind_1_bytes"),
	masking("Base64 in lines", "/\", whiteSpace,", "/\", \"\",", "/Base64_in_lines"),
	masking("hexadecimal", ", {reader: newHexadecimal()}}", "}", "/hexadecimal"),
	masking("hexadecimal in upper case", "a.characters[c] = c | 0x20", "_ = c", "/hexadecimal,_upper_case"),
	masking("hexadecimal with separators", "whiteSpace+\":-\"", "whiteSpace", "/hexadecimal_with"),
	{name: "more is masked than is promised", pkg: "hostfuncs/secrets", attack: "TestSeparatorsAreBounded",
		edits: in("internal/masking/forms.go", "case c == separator && w.between < MaxBetween:", "case c == separator:")},

	{name: "elements need not fit their table", pkg: "runtime/internal/engine", attack: "TestElementsThatDoNotFit",
		edits: in("runtime/internal/wasm/validate_data.go", "; end > size {", "; end > size && false {")},

	{name: "ended calls are not printed after a failure", pkg: "cmd/caisson", attack: "TestSlowScripts/full",
		edits: in("cmd/caisson/batch_view.go", "if v.showRecords(ended) != nil {", "if false {")},
	{name: "records are lost with standard output", pkg: "cmd/caisson", attack: "TestSalvage",
		edits: in("cmd/caisson/batch_view.go", "		v.o.printLost(ended.Records)\n", "")},
	{name: "the record of a single call is lost with standard output", pkg: "cmd/caisson", attack: "TestSlowScripts/full",
		edits: in("cmd/caisson/call.go", "		o.printLost(report.Records)\n", "")},

	{name: "batches are stored where tools may write", pkg: "cmd/caisson", attack: "TestScripts/approvals",
		edits: in("cmd/caisson/host.go", "err == nil && found {", "err == nil && found && false {")},
	{name: "tools may write to the cache", pkg: ".", attack: "TestAttackForgedCode",
		edits: in("writers.go", "kept := h.kept", "var kept []string")},
	{name: "tools may write below the cache", pkg: ".", attack: "TestAttackForgedCode",
		edits: in("writers.go", "holding.Of([]string{path}, dir)", "\"\", nil")},
	{name: "fingerprints do not cover the call id", pkg: "executor", attack: "TestAttackExchangedCalls/in_two_batches",
		edits: in("executor/effect.go", "\"caisson-approval/v3\", callID,", "\"caisson-approval/v3\", \"\",")},
	{name: "fingerprints do not cover the order", pkg: "executor", attack: "TestAttackReorderedCalls",
		edits: in("executor/wait.go", "w.before = c.batch.order.digest()", "w.before = \"\"")},
	{name: "fingerprints list all earlier calls", pkg: "executor", attack: "TestPlanningIsLinear",
		edits: in("executor/effect.go", "o.last = digestOf(", "o.last += digestOf(")},
	{name: "approvals need no fingerprint", pkg: "cmd/caisson", attack: "TestDecisionsNameOneCall",
		edits: in("cmd/caisson/batch_resume.go", "strings.HasPrefix(a.Fingerprint, fingerprint)", "strings.HasPrefix(fingerprint, \"\")")},
	{name: "a batch is claimed only in the state folder", pkg: "internal/batches", attack: "TestAFileIsClaimedOnceWhateverRemembersIt",
		edits: in("internal/batches/place.go", "take(here, marker); !ours || err != nil {", "true, error(nil); !ours || err != nil {")},

	{name: "JSON is printed unescaped", pkg: "cmd/caisson", attack: "TestAttackInvisibleJSON",
		edits: in("cmd/caisson/input.go", "return terminal.EscapeJSON(text), nil", "return text, nil")},
	{name: "events are printed unescaped", pkg: "cmd/caisson", attack: "TestScripts/approvals",
		edits: in("cmd/caisson/batch_view.go", "	event.Data = terminal.EscapeJSON(event.Data)\n", "	_ = terminal.EscapeJSON(event.Data)\n")},
	{name: "arguments are shown unescaped", pkg: "examples/agent", attack: "TestApprovalsShowWhatIsApproved",
		edits: in("examples/agent/visible.go", "return escaped(text, tool.Deceives)", "return text")},
	{name: "a capital I does not look like l", pkg: "registry", attack: "TestAttackLookAlikeIsLoaded",
		edits: in("internal/spelling/lookalike.go", "if c == 'I' {", "if false {")},
	{name: "look-alikes are told apart", pkg: "registry", attack: "TestAttackLookAlikeIsLoaded",
		edits: in("internal/spelling/lookalike.go", "	one, other := spelled(a), spelled(b)\n", "	one, other := []byte(a), []byte(b)\n")},

	{name: "a broken manifest gives its names up", pkg: "registry", attack: "TestAttackBrokenManifest/an_unknown_key",
		edits: in("registry/source.go", "			if r.names.add(e) == nil {\n				r.noteChange()\n			}\n", "")},
	{name: "a start reads input", pkg: "runtime/internal/wasi", attack: "TestStartsEndBeforeWhatDependsOnTheCall/input",
		edits: in("runtime/internal/wasi/readwrite.go", "case d.stdin && c.system.Starting:", "case false:")},
	{name: "a start writes output", pkg: "runtime/internal/wasi", attack: "TestStartsEndBeforeWhatDependsOnTheCall/output",
		edits: in("runtime/internal/wasi/readwrite.go", "case c.system.Starting && (d.number == 1 || d.number == 2):", "case false:")},
	{name: "a start goes on without the directory that it needed", pkg: "runtime/internal/wasi", attack: "TestStartsEndBeforeWhatDependsOnTheCall/no_file",
		edits: in("runtime/internal/wasi/functions.go", "if err := system.startError(f.name); err != nil {", "if err := system.startError(f.name); err != nil && false {")},
	{name: "calls share the files that a start opened", pkg: "runtime/internal/wasi", attack: "TestResumedDescriptorsAreOfTheCall",
		edits: in("runtime/internal/wasi/start.go", "s.Files.ReopenFile(d.file)", "d.file")},
	{name: "calls share the inode numbers that they gave", pkg: "runtime/internal/wasi", attack: "TestResumedInodesAreOfTheCall",
		edits: in("hostfuncs/files/outline.go", "maps.Clone(from.virtualInodes)", "maps.Collect(maps.All(v.virtualInodes))\n	v.virtualInodes = from.virtualInodes")},
	{name: "constant files are not part of the identity", pkg: "runtime", attack: "TestConstantFilesArePartOfTheIdentity",
		edits: in("runtime/internal/permit/terms.go", "t.Constants = append(t.Constants, ", "_ = append(t.Constants, ")},

	{name: "others may write to a filled cache", pkg: "runtime/internal/engine", attack: "TestFilledStoreIsRead",
		edits: in("internal/hostfile/system_unix.go", "mode&0o022 != 0", "mode&0o022 != 0 && false")},
	{name: "others may write to the index of manifests", pkg: ".", attack: "TestAttackIndexOfOthers",
		edits: in("internal/folder/folder.go", "exposed := hostfile.Protected(info); exposed != nil {", "exposed := hostfile.Protected(info); exposed != nil && false {")},
	{name: "the index is believed about what is called", pkg: ".", attack: "TestAttackForgedIndex",
		edits: in("runtime/tool.go", "cmp.Or(t.manifest.Confirm(), t.broken)", "cmp.Or(error(nil), t.broken)")},
	{name: "the index goes by size alone", pkg: ".", attack: "TestAttackSwappedManifest",
		edits: in("manifests/index.go", "append([]byte(format), source...)", "append([]byte(format), make([]byte, len(source))...)")},
	{name: "a damaged index is used", pkg: "manifests", attack: "TestAttackDamagedIndex",
		edits: in("manifests/index.go", "head != x.head(entries)", "!strings.HasPrefix(head, indexFormat)")},
	{name: "a log is cut without regard to secrets", pkg: "runtime/internal/answer", attack: "TestAttackSecretsAtTheCut",
		edits: in("runtime/internal/answer/log.go", "Tail: maxWords + longest", "Tail: maxWords")},
	{name: "traces are logged whole", pkg: "runtime", attack: "TestAttackLongTraces",
		edits: in("runtime/internal/answer/log.go", "a.trace[:min(len(a.trace), maxTrace)]", "a.trace")},
	{name: "a tool's reason may begin like the host's", pkg: "runtime", attack: "TestAttackForgedDenial",
		edits: in("runtime/internal/answer/result.go", "return theToolSays + reason", "return reason")},
	{name: "functions of the embedding program begin after the deadline", pkg: "runtime", attack: "TestAttackHostFunctionAfterTheDeadline",
		edits: in("runtime/host_functions.go", "if ctx.Err() != nil { //", "if false { //")},
	{name: "reasons are searched whole", pkg: "runtime/internal/answer", attack: "TestReasonsAreSearchedInPart",
		edits: in("runtime/internal/answer/cause.go", "if len(reason) > maxReason {", "if len(reason) < 0 {")},

	{name: "approvals cover any callee", pkg: "executor", attack: "TestAttackReplacedCallee/before_it_runs",
		edits: append(in("executor/resume.go", " && c.wasShown(s):", ":"), unbound...)},
	{name: "approvals for a session cover any callee", pkg: "executor", attack: "TestAttackReplacedCallee/after_it_was_approved_for_the_session",
		edits: unbound},
	{name: "a callee may be replaced while its caller runs", pkg: "executor", attack: "TestAttackReplacedCallee/while_it_runs",
		edits: in("executor/effect.go", "&& identity == approved {", "&& identity != \"\" || approved == \"\" {")},

	{name: "a key holds the whole request line", pkg: "server/rest", attack: "TestAttackLongRequestLines",
		edits: in("server/rest/keys.go", "strings.Clone(x.request.URL.Path), key}", "strings.TrimSpace(x.request.URL.Path), key}")},
	{name: "a paused run keeps its agent's tools", pkg: "server/rest", attack: "TestAttackToolTakenFromAnAgent/the_tool_is_taken",
		edits: in("server/sessions/sessions.go", "options.AllowedNow = func() ([]string, error) { return s.Allowed(ctx, caller) }",
			"names, err := s.Allowed(ctx, caller)\n		options.AllowedNow = func() ([]string, error) { return names, err }")},
	{name: "long arguments are checked without a turn", pkg: "executor", attack: "TestAttackLongArguments/one_call",
		edits: in("executor/plan.go", "if turn == nil && bytes > longArguments {", "if turn == nil && bytes < 0 {")},
	{name: "each call of a batch waits for a turn", pkg: "executor", attack: "TestAttackManyTurns",
		edits: in("executor/plan.go", "time.Since(began) >= turnTime", "time.Since(began) >= 0")},
	{name: "calls of the client keep their agent's tools", pkg: "executor", attack: "TestAttackToolTakenFromARunningBatch/the_client's",
		edits: in("executor/schedule.go", "if c.phase == phaseWaiting && !c.isAllowed(ctx) {", "if c.phase == phaseWaiting && c.batch == nil {")},
	{name: "calls that wait keep their agent's tools", pkg: "executor", attack: "TestAttackToolTakenFromARunningBatch/taken",
		edits: in("executor/admit.go", "case !c.isAllowed(ctx):", "case false:")},
	{name: "outputs that are asked for make sessions", pkg: "server/rest", attack: "TestAttackSessionsThatAreAskedFor",
		edits: append(in("server/rest/sessions.go", "x.api.options.Sessions.Find(", "x.api.options.Sessions.Get("), oldest...)},
	{name: "a token's sessions end those of another", pkg: "server/sessions", attack: "TestAttackSessionsOfOneToken",
		edits: oldest},
	{name: "batches have any number of messages", pkg: "server/mcp", attack: "TestAttackLargeBatch",
		edits: in("server/mcp/check.go", "n == 0 || n > maxBatch", "n == 0")},
	{name: "calls of runs take nothing", pkg: "server/rest", attack: "TestAttackRunsOfManyCalls",
		edits: in("server/rest/run.go", "		held += r.calls * recordBytes\n", "")},
	{name: "batches of MCP need no room", pkg: "server/mcp", attack: "TestAttackBatchesWithoutRoom",
		edits: in("server/mcp/check.go", "	if hold(n*messageBytes) != nil {", "	if n < 0 {")},
	{name: "decoded values take nothing", pkg: "server/mcp", attack: "TestAttackValuesOfOpenCalls/_meta",
		edits: in("server/mcp/check.go", "	if c.hold(beyond(before-c.values)) != nil {", "	if beyond(before-c.values) < 0 {")},
	{name: "decoded values over lines take nothing", pkg: "server/mcp", attack: "TestAttackOpenRequests/in_values",
		edits: in("server/mcp/check.go", "len(params) + messageBytes + beyond(", "len(params) + messageBytes + 0*(")},
	{name: "streams of MCP outlive their tokens", pkg: "server/mcp", attack: "TestAttackStreamsOutliveTokens",
		edits: in("server/mcp/http.go", "			grace = toTellRefused\n", "")},
	{name: "the command waits for a client that does not read", pkg: "cmd/caisson", attack: "TestAttackMCPUnread",
		edits: in("cmd/caisson/mcp.go", "(ctx), toClose)", "(ctx), 1000*toClose)")},
	{name: "messages have any number of values", pkg: "server/mcp", attack: "TestAttackManyValues/stateless",
		edits: in("server/mcp/check.go", "		if c.values <= 0 {\n", "		if c.values <= 0 && false {\n")},
	{name: "messages that are no calls have params of any length", pkg: "server/mcp", attack: "TestAttackLongParams/sessions/a_level",
		edits: in("server/mcp/check.go", "name != callMethod && len(params.Text()) > maxParams", "false")},
	{name: "ids have any length", pkg: "server/mcp", attack: "TestAttackLongParams/lines/an_id",
		edits: in("server/mcp/check.go", "	case len(v.Text()) > maxIDBytes:\n		return false\n", "")},
	{name: "a body gets the memory that it announces", pkg: "server/rest", attack: "TestAttackAnnouncedBodies",
		edits: in("server/rest/exchange.go", "int(min(r.ContentLength, firstGrowth))", "int(max(r.ContentLength, firstGrowth))")},
	{name: "a long answer is written on after its token was revoked", pkg: "server", attack: "TestAttackLongAnswersOutliveTokens/revoked:_true",
		edits: in("server/in_flight.go", "					answer.end(answering, err)\n", "					_ = answer\n")},
	{name: "a long answer is written although its token was revoked", pkg: "server", attack: "TestAttackLateAnswers",
		edits: in("server/answer.go", "w.late > piece {", "w.late < 0 {")},
	{name: "a connection that is not read outlives its token", pkg: "server", attack: "TestAttackStallsOutliveTokens/a_long_answer",
		edits: in("server/answer.go", "	if w.begun {\n		w.connection.endIn(lastWords)\n	} else {", "	if w.begun {\n	} else {")},
	{name: "the last piece of an answer outlives its token", pkg: "server", attack: "TestAttackLastPiecesOutliveTokens/revoked",
		edits: in("server/in_flight.go", "for answering.Err() == nil {", "for ctx.Err() == nil {")},
	{name: "a connection takes requests after its token was revoked", pkg: "server", attack: "TestAttackConnectionsOutliveTokens/an_answer_that_has_begun,_and_a_request_that_waits",
		edits: in("server/connections.go", "if one.last {", "if one.last && false {")},
	{name: "requests of a connection that was dropped are handled", pkg: "server", attack: "TestAttackConnectionsOutliveTokens/an_answer_that_has_begun,_and_a_request_that_waits",
		edits: in("server/connections.go", "	return !c.closed\n", "	return true\n")},
	{name: "a token that ends after its request ends another one's", pkg: "server", attack: "TestAttackConnectionsAfterTokens/request_has_ended",
		edits: in("server/connections.go", "c.last = c.last || ctx.Err() == nil", "c.last = true")},
	{name: "idle connections are kept", pkg: "server", attack: "TestIdleConnections",
		edits: in("server/server.go", "IdleTimeout: limits.Idle,", "IdleTimeout: -1,")},
	{name: "a client is not told that its connection ends with its token", pkg: "server", attack: "TestAttackConnectionsOutliveTokens/an_answer_that_begins_late",
		edits: in("server/answer.go", "			w.Header().Set(\"Connection\", \"close\")\n			w.connection.endIn", "			w.connection.endIn")},
	{name: "a connection that is not read is closed in two stalls", pkg: "server", attack: "TestAttackStallsOnce",
		edits: in("server/writing.go", "		_ = c.Conn.Close() //", "		//")},
	{name: "clients over lines have any number of requests", pkg: "server/mcp", attack: "TestAttackOpenRequests/in_number",
		edits: in("server/mcp/lines.go", "len(w.open) >= maxOpen ||", "")},
	{name: "clients over lines have requests of any length", pkg: "server/mcp", attack: "TestAttackOpenRequests/in_bytes",
		edits: in("server/mcp/lines.go", "|| w.bytes+size > maxOpenBytes", "")},
	{name: "answers wait for a client in any number", pkg: "server/mcp", attack: "TestAttackUnreadAnswers",
		edits: in("server/mcp/lines.go", "		w.readable()\n", "")},
	{name: "messages count only until they are in the queue", pkg: "server/mcp", attack: "TestAttackMessagesInTheQueue/a_call_whose_client_has_gone",
		edits: in("server/mcp/http.go", "	if r.Method == http.MethodPost {\n		s.web.settle", "	if r.Method == http.MethodPost && false {\n		s.web.settle")},
	{name: "notifications are read from a client that does not read", pkg: "server/mcp", attack: "TestAttackUnreadAnswersAndNotifications",
		edits: in("server/mcp/lines.go", "			w.notified = ok\n", "")},
	{name: "answers of a batch wait for the last", pkg: "server/mcp", attack: "TestAttackAnswersOfABatch/a_call",
		edits: in("server/mcp/lines.go", "doc.Root().Kind() == jsontext.Array {", "doc.Root().Kind() == jsontext.Array && false {")},
	{name: "a client that does not read outlives its input", pkg: "server/mcp", attack: "TestSilentReader/the_input_ends",
		edits: in("server/mcp/lines.go", "			close(w.ended) // the SDK reads no more\n", "")},
	{name: "a revoked token is told that its body is wrong", pkg: "server/mcp", attack: "TestAttackRevokedWhileSending",
		edits: in("server/mcp/http.go", "err != nil && standing.IsRefusal(", "err == nil && standing.IsRefusal(")},
	{name: "clients that disconnect are failures", pkg: "server/mcp", attack: "TestAttackLogOfDisconnects",
		edits: in("server/mcp/server.go", "if errors.Is(err, errGone) {", "if err == nil {")},
	{name: "checks of tokens keep the request", pkg: "server", attack: "TestAttackHeadersThatAreKept/with_a_token",
		edits: in("server/gate.go", "return readTokens(ctx, func() error { _, err :=", "return readTokens(r.Context(), func() error { _, err :=")},
	{name: "sessions of MCP keep their first request", pkg: "server/mcp", attack: "TestAttackHeadersOfSessions",
		edits: in("server/mcp/sessions.go", "_ = begun.Wait()", "_ = request.Session.Wait()")},
	{name: "records wait while the ledger is pruned", pkg: "internal/ledger", attack: "TestAttackPrunesInTheWay",
		edits: in("internal/ledger/retain.go", "maxRemoved = 64", "maxRemoved = 1 << 40")},
	{name: "the first request opens the ledger for itself alone", pkg: ".", attack: "TestAttackFirstRequestThatIsGivenUp",
		edits: in("records.go", "began.After(r.again)", "r.again.IsZero()")},
	{name: "a host claims paused batches for itself alone", pkg: ".", attack: "TestAttackResumedInTwoProcesses/one_place",
		edits: in("caisson.go", "		e.Pause.Claim = cmp.Or[executor.Claimer](e.Pause.Claim, h.recorder)\n", "")},
	{name: "the log of the database is as long as readers want", pkg: "internal/ledger", attack: "TestAttackReadersWithoutEnd",
		edits: in("internal/ledger/internal/database/database.go", "d.commits%shortenAfter == 0", "d.commits < 0")},
	{name: "host functions that wait for a processor are blamed", pkg: "runtime/internal/watchdog", attack: "TestAttackStarvedHostFunctions",
		edits: in("runtime/internal/watchdog/watchdog.go", "	if goroutinesRun {\n		g.inHost++\n	}\n", "	g.inHost++\n")},
	{name: "records are committed in the order in which they come", pkg: "internal/ledger", attack: "TestAttackRecordsInTheWay",
		edits: in("internal/ledger/turns.go", "	tenant := w.entry.Tenant\n", "	tenant := \"\"\n")},
	{name: "what is written waits for readers of other processes", pkg: "internal/ledger/internal/database",
		attack: "TestAttackReadersOfOtherProcesses",
		edits:  in("internal/ledger/internal/database/database.go", "\"pragma busy_timeout = 0\", ", "")},
	{name: "records are removed by their number alone", pkg: "internal/ledger", attack: "TestAttackLargeRecords",
		edits: in("internal/ledger/retain.go", "calls <= o.KeepCalls && bytes <= o.KeepBytes", "calls <= o.KeepCalls")},
	{name: "records of who has most are removed first, whoever that is", pkg: "internal/ledger", attack: "TestAttackRecordsOfOthers",
		edits: in("internal/ledger/retain.go", "\" desc limit 2\"", "\" limit 2\"")},
	{name: "checkpoints of any key are accepted", pkg: "internal/ledger", attack: "TestAttackForgedCheckpoints",
		edits: in("internal/ledger/chain.go", "own := l.key == nil || ", "own := true || ")},
	{name: "redacted values are not looked for in the rest of the record", pkg: "internal/redact",
		attack: "TestAttackRepeatedValues", edits: in("internal/redact/work.go", "	if len(values) > 0 {", "	if false {")},
	{name: "arguments that do not fit are redacted by their pointers alone", pkg: "internal/redact",
		attack: "TestAttackArgumentsInOtherForms",
		edits:  in("internal/redact/redact.go", " || record.Result.Kind == tool.InvalidArguments:", ":")},
	{name: "any number of redacted values is looked for", pkg: "internal/redact", attack: "TestAttackManyValues",
		edits: in("internal/redact/work.go", "*bytes > maxWork", "*bytes < 0")},
	{name: "contents are not compared with their digests", pkg: "internal/ledger", attack: "TestAttackChangedLedger",
		edits: in("internal/ledger/chain.go", "case content != nil && !bytes.Equal(", "case content != nil && false && !bytes.Equal(")},
	{name: "links are not compared with those before", pkg: "internal/ledger", attack: "TestAttackChangedLedger",
		edits: in("internal/ledger/chain.go", "case !bytes.Equal(at.hash, at.hashAfter(before.hash)):", "case false:")},
	{name: "a chain may end before its last checkpoint", pkg: "internal/ledger", attack: "TestAttackChangedLedger",
		edits: in("internal/ledger/chain.go", "case at.seq > c.last.seq:", "case false:")},
	{name: "records have calls of any length", pkg: "internal/ledger", attack: "TestAttackLongCalls",
		edits: in("internal/ledger/entry.go", "if len(*text) > tool.MaxArgumentsBytes {", "if false {")},

	{name: "an exit in a panic's value is not noticed", pkg: "native", attack: "TestAttackErrorsThatRunCode/a_panic_with_a_value_that_exits",
		edits: append(in("native/run.go", "	defer func() { done <- r }()\n", ""), in("native/run.go", "debug.Stack()))}\n		}\n", "debug.Stack()))}\n		}\n		done <- r\n")...)},
	{name: "the text of a function's error is read after its deadline", pkg: "native", attack: "TestAttackErrorsThatRunCode/an_error_that_blocks", hangs: true,
		edits: in("native/run.go", "detached(err)}", "err}")},

	{name: "files are read whatever their size", pkg: "internal/batches", attack: "TestAttackLargeFile",
		edits: in("internal/folder/folder.go", "if info.Size() > limit {", "if info.Size() > limit && false {")},
	{name: "a connection is kept for any request", pkg: "server", attack: "TestAttackConnectionsWithoutToken",
		edits: in("server/connections.go", "if !one.running && (found == nil", "if !one.running && !one.handled.Load() && (found == nil")},
	{name: "each request reads its token", pkg: "server/auth", attack: "TestAttackMadeUpTokens",
		edits: in("server/auth/check.go", "if !t.isReading {", "if true {")},
	{name: "revoked tokens are read again", pkg: "server/auth", attack: "TestAttackRevokedTokens",
		edits: in("server/auth/check.go", "|| !worked && t.isWithin(refusedFor, c.began)", "")},
	{name: "what was submitted counts until a restart", pkg: "server/rest", attack: "TestAttackOutputsAfterARestart",
		edits: in("server/rest/stored_runs.go", "	r.held.submitted = (&submission{", "	_ = (&submission{")},
	{name: "a body whose token cannot be read is missing", pkg: "server/rest", attack: "TestBodiesWhoseTokenCannotBeRead",
		edits: in("server/rest/exchange.go", "memory.ErrFull), errors.Is(err, standing.ErrUnreadable):", "memory.ErrFull):")},
	{name: "tokens are read without a pause", pkg: "server/auth", attack: "TestAttackMadeUpTokens",
		edits: in("server/auth/check.go", "max(minReadPause, time.Since(start))", "0*time.Since(start)")},
	{name: "any number of unknown tokens wait", pkg: "server/auth", attack: "TestAttackMadeUpTokens",
		edits: in("server/auth/check.go", "t.waiting.Add(1) > maxWaiting", "t.waiting.Add(1) > 1<<40")},
	{name: "refusals may stall", pkg: "server", attack: "TestAttackRefusalsThatStall",
		edits: append(in("server/connections.go", "		one.expireIn(c.refusal) //", "		//"),
			in("server/connections.go", "		c.expireIn(min(lingerTime, c.of.refusal))\n", "		_ = lingerTime\n")...)},
	{name: "refused requests delay a stop", pkg: "server", attack: "TestAttackStop",
		edits: in("server/server.go", "held.dropRefused(now.Add(-restTime))", "_ = held")},
	{name: "requests of one tenant count only until their handlers have ended", pkg: "server", attack: "TestAttackUnreadBodiesOfOneTenant",
		edits: in("server/connections.go", "		if c.closed {\n			c.settle()", "		if true {\n			c.settle()")},
	{name: "the rest of a body is waited for", pkg: "server", attack: "TestAttackUnreadBodiesOfOneTenant",
		edits: in("server/answer.go", "			w.body.ignoreRest()\n", "")},
	{name: "long answers are written whole", pkg: "server", attack: "TestSlowReaders",
		edits: in("server/writing.go", "p[n:min(n+piece, len(p))]", "p[n:]")},
	{name: "every refused request is logged", pkg: "server", attack: "TestAttackFloodedLog",
		edits: in("internal/sampling/sampling.go", "if !s.limit.Allow() {", "if !s.limit.Allow() && false {")},
	{name: "a server without tokens stays open", pkg: "server", attack: "TestAttackFirstToken",
		edits: in("server/gate.go", "exist, err = s.options.Tokens.Exist(ctx); return err", "return nil")},
	{name: "a body is read whatever becomes of the token", pkg: "server", attack: "TestAttackRevokedWhileSending/and_no_more_comes",
		edits: in("server/in_flight.go", "stopReading = s.readUntil(ctx, w)", "_ = s.readUntil")},
	{name: "the token is checked only before the body", pkg: "server", attack: "TestAttackRevokedWhileSending/and_the_rest_follows",
		edits: in("server/answer.go", "if err != nil && b.check != nil {", "if err != nil && b.check != nil && false {")},
	{name: "the token is checked only before a handler of REST", pkg: "server/rest", attack: "TestAttackRevokedBeforeTheEffect",
		edits: in("server/rest/exchange.go", "	if err := standing.Check(x.request.Context()); err != nil {\n		return reply{}, err\n	}\n	if x.route.method ==", "	if x.route.method ==")},
	{name: "connections stay when there are no descriptors", pkg: "server", attack: "TestAttackDescriptors",
		edits: in("server/connections.go", "		c.scarce(nil)\n", "")},
	{name: "without descriptors, ever fewer connections are held", pkg: "server", attack: "TestAttackDescriptorsOfTools",
		edits: in("server/connections.go", "max(min(c.limit, fewer), (c.most+1)/2)", "min(c.limit, fewer)")},
	{name: "the limit on connections stays low", pkg: "server", attack: "TestAttackDescriptorsOfTools",
		edits: in("server/connections.go", "	c.limit = c.most\n", "	c.limit++\n")},
	{name: "connections stay when there are no descriptors for tokens", pkg: "server", attack: "TestAttackDescriptorsOfTools",
		edits: in("server/connections.go", "		one.of.scarce(one)\n", "		_ = one\n")},
	{name: "submitted bodies count whole", pkg: "server/rest", attack: "TestAttackBytesThatNobodyHolds",
		edits: in("server/rest/answer_run.go", "size := s.size() + len(s.document)", "size := len(x.body)")},
	{name: "tokens without a tenant share the places in which answers are made", pkg: "server/rest", attack: "TestAttackUnreadAnswersOfAToken",
		edits: in("server/rest/exchange.go", "memory.Sharer(c)", "memory.Sharer(auth.Caller{Tenant: c.Tenant})")},
	{name: "requests whose answers were not given run again", pkg: "server/rest", attack: "TestAttackRepeatedWithoutAnswer",
		edits: in("server/rest/keys.go", "!isKept && x.begun != nil", "!isKept && false")},
	{name: "reasons have any length", pkg: "server/rest", attack: "TestAttackLongReasons",
		edits: in("server/rest/answer_run.go", "utf8.RuneCountInString(v.String()) > maxReason", "!utf8.ValidString(v.String())")},
	{name: "sessions keep reasons", pkg: "executor", attack: "TestApprovalScopes",
		edits: in("executor/internal/pause/approvals.go", "	approval.Reason = \"\"\n", "")},
	{name: "texts hold the bodies that they come in", pkg: "server/rest", attack: "TestAttackTextsThatHoldTheirBodies/the_id_of_a_session",
		edits: in("internal/jsontext/decode/decode.go", "*to = strings.Clone(v.String())", "*to = v.String()")},
	{name: "types of images hold their links", pkg: "server/rest", attack: "TestAttackTextsThatHoldTheirBodies/the_type_of_an_image",
		edits: in("dialects/internal/wire/answers.go", "strings.Clone(media)", "media")},
	{name: "runs and keys of idle tenants stay", pkg: "server/rest", attack: "TestAttackIdleTenants",
		edits: append(in("server/rest/rest.go", "			a.runs.sweep()\n", ""), in("server/rest/rest.go", "			a.keys.sweep()\n", "")...)},
	{name: "questions that are put back do not count", pkg: "server/mcp", attack: "TestAttackTakenQuestions",
		edits: in("server/mcp/waiting.go", "case own >= maxWaitingOwn:", "case own >= maxWaitingOwn && time.Until(p.until) == waitFor:")},
	{name: "ids of a batch are compared as they are written", pkg: "server/mcp", attack: "TestAttackEqualIDs",
		edits: in("server/mcp/check.go", "		ids[value] = true\n", "		ids[id] = true\n")},
	{name: "each session keeps as much as it likes", pkg: "executor/internal/output", attack: "TestAttackManyStores/guarded",
		edits: in("executor/internal/output/store.go", "	s.shared.makeRoom(size)\n", "")},
	{name: "bodies of open requests have any number of bytes", pkg: "server", attack: "TestAttackUnfinishedBodies/of_one_tenant",
		edits: in("server/answer.go", "if b.held != nil {", "if b.held != nil && false {")},
	{name: "answers that are not read have any number of bytes", pkg: "server/rest", attack: "TestAttackUnreadAnswers/a_run",
		edits: in("server/rest/exchange.go", "r.counted = memory.TryReplace(ctx, len(r.body))", "r.counted = true")},
	{name: "frames are estimated without what joins, and not measured", pkg: "runtime/internal/engine", attack: "TestDepthIsExact/100_blocks_whose_paths_join",
		edits: append(in("runtime/internal/wasm/validate_body.go", "b.spills.values + spilled", "b.spills.values + 0*spilled"), unmeasured...)},
	{name: "frames are what a module's text lets expect", pkg: "runtime/internal/engine", attack: "TestDepthIsExact/more_locals_and_operands_than_registers",
		edits: unmeasured},
	{name: "callers go on when a callee has taken more than there is", pkg: "runtime/internal/engine", attack: "TestAttackNestedOverrun",
		edits: in("runtime/internal/engine/run.go", "err == nil && run.isOverdrawn()", "err == nil && false")},
	{name: "callers pay for slices that were not granted", pkg: "runtime/internal/engine", attack: "TestWhatIsPaidIsExact",
		edits: in("runtime/internal/engine/meter.go", "		return counter, false\n", "		m.granted += grant\n		return counter, false\n")},
	{name: "functions begin after the end of their run", pkg: "runtime/internal/engine", attack: "TestAttackFunctionsOneAfterAnother",
		edits: in("runtime/internal/engine/instance.go", "	if err := contextError(ctx, op); err != nil {\n		return err\n	}\n	return classify(ctx, op, callGuest(ctx, function, stack))", "	return classify(ctx, op, callGuest(ctx, function, stack))")},
	{name: "followers hold events of forgotten runs", pkg: "server/rest", attack: "TestAttackFollowersOfForgottenRuns",
		edits: in("server/rest/events.go", "memory.Replace(e.ctx, bytes) != nil", "false && memory.Replace(e.ctx, bytes) != nil")},
	{name: "batches begin without room for their records", pkg: "server/rest", attack: "TestAttackBatchesWithoutRoom",
		edits: in("server/rest/calls.go", "return memory.Reserve(ctx, len(asked.batch.Calls)*recordBytes)", "return memory.Reserve(ctx, 0*recordBytes)")},
	{name: "many answers to a request wait for one another", pkg: "server/internal/memory", attack: "TestAnswers",
		edits: in("server/internal/memory/memory.go", "if why == oneOfMany && r.held > 0", "if why == oneOfMany && r.held < 0")},
	{name: "an image is made until it is finished", pkg: "runtime/internal/engine", attack: "TestAttackLongImages",
		edits: in("runtime/internal/engine/image_linux.go", "if at%comparedBytes == 0 && ctx.Err() != nil {", "if false {")},
	{name: "values for tools count as bytes", pkg: "server/rest", attack: "TestAttackManyRequests/with_many_values",
		edits: in("server/rest/runs.go", "len(x.body) + sizeOfRequests(asked.batch.Requests)", "len(x.body) + 0*sizeOfRequests(asked.batch.Requests)")},
	{name: "each record of a batch has a whole log", pkg: "server/rest", attack: "TestAttackLongLogs",
		edits: in("executor/settle.go", "	output.CutDetails(&c.record, b.details)\n", "")},
	{name: "answers to calls wait for their clients alone", pkg: "server/rest", attack: "TestAttackRepeatedCallWithoutAnswer",
		edits: in("server/rest/calls.go", "x.make(context.WithoutCancel(x.request.Context()), makeReply)", "x.make(x.request.Context(), makeReply)")},
	{name: "who waits for room keeps others from making answers", pkg: "server/rest", attack: "TestAttackAnswersInEachOthersWay/of_more",
		edits: in("server/rest/exchange.go", "r.counted = memory.TryReplace(ctx, len(r.body))", "r.counted, err = true, memory.Replace(ctx, len(r.body))")},
	{name: "work begins with the memory of those who wait for more", pkg: "server/internal/memory", attack: "TestAttackBeginnersOvertake",
		edits: in("server/internal/memory/memory.go", " || yields && p.waiting[tenant] > 0", "")},
	{name: "answers are waited for when their clients have gone", pkg: "server/rest", attack: "TestAttackAnswersWithoutClients",
		edits: in("server/rest/calls.go", "		case <-late.C:\n			cancel()\n", "")},
	{name: "requests without an answer run again", pkg: "server/rest", attack: "TestAttackRepeatedWithoutAnyAnswer/a_panic",
		edits: in("server/rest/keys.go", "isKept, k.failure = true, errNoAnswer", "k.failure = errNoAnswer")},
	{name: "calls run again if their token cannot be read at their end", pkg: "server/rest", attack: "TestAttackRepeatedWithUnreadableToken/a_batch_with_events",
		edits: in("server/rest/keys.go", "!isKept && x.begun != nil", "!isKept && x.begun != nil && x.request.Context().Err() != nil")},
	{name: "each lost record is logged", pkg: "executor", attack: "TestAttackLogOfLostRecords",
		edits: in("executor/settle.go", "b.executor.failures.ErrorContext(", "b.executor.log.ErrorContext(")},
	{name: "tokens cannot be revoked on a full disk", pkg: "server/auth", attack: "TestAttackRevokedOnAFullDisk",
		edits: in("server/auth/tokens.go", "errors.Is(err, ledger.ErrFull) && t.documents.MakeRoom()", "false")},
	{name: "no space is kept for changes on a full disk", pkg: "internal/ledger", attack: "TestAttackFullDisk",
		edits: in("internal/ledger/documents.go", "		d.reserve()\n", "")},
	{name: "agents are imported from other tenants' folders", pkg: "internal/ledger", attack: "TestAttackOldFolders",
		edits: in("internal/ledger/internal/oldfolders/oldfolders.go", "hex.EncodeToString(digest[:]) != filepath.Base(dir)", "hex.EncodeToString(digest[:]) == dir")},
	{name: "tokens that cannot be imported open the server", pkg: "internal/ledger", attack: "TestAttackOldFolders",
		edits: in("internal/ledger/internal/oldfolders/oldfolders.go", "left, content = errors.Join(left, unread), []byte(\"{}\")", "left = errors.Join(left, unread)\n				continue")},
	{name: "tokens that cannot be read are wrong", pkg: "server", attack: "TestAttackUnreadableToken",
		edits: in("server/internal/standing/standing.go", "fmt.Errorf(\"%w: %w\", ErrUnreadable, err)", "fmt.Errorf(\"%w: %w\", auth.ErrUnknown, err)")},
	{name: "the file of a ledger is opened without SQLite", pkg: "internal/ledger/internal/database", attack: "TestAttackOtherPrograms",
		edits: in("internal/ledger/internal/database/sqlite.go", "	var opened os.FileInfo\n", "	var opened os.FileInfo\n	if f, failed := root.Open(FileName); failed == nil {\n		_ = f.Close()\n	}\n")},
	{name: "runs are kept for those who follow them elsewhere", pkg: "server/rest", attack: "TestAttackFollowersOfBigRuns",
		edits: in("server/rest/remote_runs.go", "delete(of.mirrors, m.run.id)", "delete(of.mirrors, r.id)")},
	{name: "any number of connections is looked at at once", pkg: "server", attack: "TestAttackManyAtATime",
		edits: in("server/reading.go", "	c.of.places <- struct{}{}\n	c.placed.Store(true)\n", "")},
	{name: "the rest of any number of bodies is read at once", pkg: "server", attack: "TestAttackManyAtATime",
		edits: in("server/reading.go", " && !c.discards.Load()", "")},
	{name: "one authenticated request is enough for many", pkg: "server", attack: "TestAttackManyAtATime",
		edits: in("server/connections.go", "		one.isKnown.Store(one.running)\n", "")},
	{name: "what is read beside a handler takes a place", pkg: "server", attack: "TestAttackManyAtATime",
		edits: in("server/reading.go", "n > 0 && !isBeside", "n > 0")},
	{name: "requests that were sent ahead are parsed at once", pkg: "server", attack: "TestAttackManyAtATime",
		edits: in("server/connections.go", "		defer one.takePlace() //", "		_ = one //")},
	{name: "a client that sends no more has gone", pkg: "server", attack: "TestClientsThatSendNoMore",
		edits: in("server/reading.go", "		return 0, c.holdEnd()\n", "		return 0, io.EOF\n")},
	{name: "a client that sends no more waits for ever", pkg: "server", attack: "TestClientsThatSendNoMore",
		edits: append(in("server/reading.go", "	over := time.AfterFunc(sendsNoMore,", "	over := time.AfterFunc(time.Hour,"),
			in("server/in_flight.go", "time.Since(began) >= 2*sendsNoMore && ", "false && ")...)},
	{name: "long answers to keys count as short ones", pkg: "internal/ledger", attack: "TestAttackLongAnswersThatWait",
		edits: in("internal/ledger/keys.go", "	w.bytes = len(answer)\n", "")},
	{name: "a tenant's keys count with those of others", pkg: "internal/ledger", attack: "TestAttackManyKeys",
		edits: append(in("internal/ledger/keys.go", "l.keys.add(key.Tenant, ", "l.keys.add(\"\", "),
			in("internal/ledger/keys.go", "keys.add(h.key.Tenant, 0", "keys.add(\"\", 0")...)},
	{name: "groups in a distant database are long", pkg: "internal/ledger", attack: "TestGroupsInADistantDatabase",
		edits: in("internal/ledger/turns.go", "	q.most = min(", "	_ = min(")},
	{name: "ids of tenants are believed after a restoration", pkg: "internal/ledger", attack: "TestAttackOlderDatabases",
		edits: in("internal/ledger/append.go", "err == nil && found == 0", "err == nil && found < 0")},
	{name: "ids of names are believed after a restoration", pkg: "internal/ledger", attack: "TestAttackOlderDatabases",
		edits: in("internal/ledger/names.go", "|| isOlder ||", "|| isOlder && false ||")},
	{name: "a ledger that was replaced is read on", pkg: "server/auth", attack: "TestUnreadableLedger",
		edits: in("internal/ledger/internal/database/database.go", "case d.unmoved != nil:", "case false:")},
	{name: "any number of answers is made at once", pkg: "server/rest", attack: "TestAttackUnreadAnswersOfAToken",
		edits: in("server/rest/exchange.go", "const maxMaking = 2", "const maxMaking = 1 << 20")},
	{name: "events are copied for each reader", pkg: "server/rest", attack: "TestAttackUnreadAnswers/its_events",
		edits: in("dialects/events.go", "bufio.NewWriter(w)", "bufio.NewWriterSize(w, len(event.Data)+64)")},
	{name: "streams continue while their tokens cannot be read", pkg: "server", attack: "TestAttackUnreadableToken",
		edits: in("server/in_flight.go", "time.Since(checked) >= maxUnchecked", "time.Since(checked) < 0")},
	{name: "an expiry needs the ledger", pkg: "server/auth", attack: "TestExpiryWithoutTheLedger",
		edits: in("server/auth/check.go", "	case refused != nil:\n		return token, refused\n", "")},
	{name: "tokens that cannot be read do not wait", pkg: "server", attack: "TestAttackDamagedToken/damaged/waits",
		edits: in("server/gate.go", "(standing.IsRefusal(err) || errors.Is(err, auth.ErrDamaged)) && g.waits(w, r, g.failures, address)", "standing.IsRefusal(err) && g.waits(w, r, g.failures, address)")},
	{name: "every failure is logged", pkg: "server", attack: "TestAttackDamagedToken/damaged/is_not_logged",
		edits: in("server/gate.go", "refusalKind{p.Status, c.ID}); ok {", "refusalKind{p.Status, c.ID}); ok || true {")},
	{name: "paths are logged whole", pkg: "server", attack: "TestAttackLongPathsInTheLog",
		edits: in("server/refusals.go", "truncate(r.URL.Path)", "r.URL.Path")},
	{name: "the first of several tokens counts", pkg: "server", attack: "TestAttackTwoTokens",
		edits: in("server/gate.go", "if len(given) != 1 {", "if len(given) == 0 {")},
	{name: "answers of handlers are read as those of net/http", pkg: "server", attack: "TestAttackAnswerAsProblem",
		edits: in("server/connections.go", "	if c.socket.handled.Load() { // a", "	if false { // a")},
	{name: "the SDK's warnings are all logged", pkg: "server/mcp", attack: "TestAttackLogOfClientMistakes",
		edits: in("internal/sampling/sampling.go", "if !s.limit.Allow() {", "if false {")},
	{name: "failures that clients cause are all logged", pkg: "server/mcp", attack: "TestAttackLogOfFailures",
		edits: in("server/mcp/server.go", "s.failures.ErrorContext", "s.log.ErrorContext")},
	{name: "wrong answers to questions are failures", pkg: "server/mcp", attack: "TestAttackWrongAnswers",
		edits: in("server/mcp/call.go", "err != nil && open.asked != nil {", "err != nil && open.asked != nil && false {")},
	{name: "sessions count only once they have begun", pkg: "server/mcp", attack: "TestAttackSessionsWhileBodiesArrive/guarded",
		edits: in("server/mcp/sessions.go", "count >= w.server.options.Most {", "count < 0 {")},
	{name: "sessions without a client stay", pkg: "server/mcp", attack: "TestAttackLostSessions",
		edits: in("server/mcp/sessions.go", "if !other.known && (", "if false && (")},
	{name: "a call over MCP outlives its request", pkg: "server/mcp", attack: "TestAttackAbandonedQuestions", hangs: true,
		edits: in("server/mcp/server.go", "		ctx, end := s.whileAwaited(ctx, r)\n", "		end := func() {}\n")},
	{name: "waiting calls hold any number of bytes", pkg: "server/mcp", attack: "TestAttackLongQuestions",
		edits: in("server/mcp/waiting.go", "maxWaitingBytes = 16 << 20", "maxWaitingBytes = 1 << 40")},
	{name: "who approves reads runs", pkg: "server/rest", attack: "TestAttackRunsWithoutRead",
		edits: in("server/rest/run.go", "if !r.mayRead(c) {", "if false {")},
	{name: "who approves follows runs", pkg: "server/rest", attack: "TestAttackRunsWithoutRead",
		edits: in("server/rest/answer_run.go", " || !r.mayRead(x.caller)", "")},
	{name: "a list of calls has any number of bytes", pkg: "server/rest", attack: "TestAttackLongRecords",
		edits: in("internal/ledger/find.go", "defaultMaxBytes = 4 << 20", "defaultMaxBytes = 1 << 40")},
	{name: "anybody may ask for the server's options", pkg: "server", attack: "TestAttackRequestsForNothing",
		edits: in("server/server.go", "DisableGeneralOptionsHandler: true", "DisableGeneralOptionsHandler: false")},
	{name: "a client that has sent more disconnects unnoticed", pkg: "server", attack: "TestAttackUnnoticedDisconnects/TLS:_true,_tokens:_true,_leaves:_true",
		edits: in("server/in_flight.go", "isGone() {", "isGone() && false {")},
	{name: "the first message of a handshake has any length", pkg: "server", attack: "TestAttackLongHandshakes",
		edits: in("server/handshake.go", "limit = s.limits.hello", "limit = 1 << 40")},
	{name: "a handshake has any length", pkg: "server", attack: "TestAttackLongHandshakes",
		edits: in("server/handshake.go", "limit = s.limits.handshake", "limit = 1 << 40")},
	{name: "hellos have the same bound with certificates", pkg: "server", attack: "TestHellosWithCertificates",
		edits: in("server/handshake.go", "helloWithCertificates     = 16 << 10", "helloWithCertificates     = 8 << 10")},
	{name: "records may be as short as clients like", pkg: "server", attack: "TestAttackShortRecords",
		edits: in("server/handshake.go", "if short <= freeRecords*fairRecord &&", "if short >= 0 &&")},
	{name: "records without data wait no longer", pkg: "server", attack: "TestAttackEmptyRecords",
		edits: in("server/handshake.go", "begun+int(empty)*(dataless-1)", "begun")},
	{name: "requests make up for records without data", pkg: "server", attack: "TestAttackEmptyRecords",
		edits: in("server/handshake.go", "freeRecords*fairRecord && empty == 0 {", "freeRecords*fairRecord {")},
	{name: "short records of all tenants wait for each other", pkg: "server", attack: "TestAttackShortRecordsOfOthers",
		edits: in("server/in_flight.go", "requests != nil {\n		return &requests.delays", "requests != nil && false {\n		return &requests.delays")},
	{name: "a connection whose request was refused is reset", pkg: "server", attack: "TestRefusalsOfLongBodies/over_TLS",
		edits: in("server/connections.go", "c.silent.Load() && !c.closed", "false && !c.closed")},
	{name: "handlers that wait for a client keep its connection", pkg: "server", attack: "TestAttackHandlersThatWait/revoked",
		edits: in("server/answer.go", "w.connection.endIn(noWords)", "_ = noWords")},
	{name: "a long record makes up for many short ones", pkg: "server", attack: "TestAttackShortRecordsBetweenOthers",
		edits: in("server/records.go", "min(r.length, longRecord)", "r.length")},
	{name: "as much is read at once as there is", pkg: "server", attack: "TestRecordsOfAnyLength",
		edits: in("server/handshake.go", "p[:min(len(p), s.records.left+aheadBytes)]", "p")},
	{name: "a header comes in any number of records", pkg: "server", attack: "TestAttackLongHandshakes",
		edits: in("server/handshake.go", "s.request.Add(int64(n)) > s.limits.header || isLong", "isLong")},
	{name: "names of fields to come are kept while a body is awaited", pkg: "server", attack: "TestAttackNamesOfTrailers",
		edits: in("server/gate.go", "			r.Trailer = nil // a map", "			// a map")},
	{name: "messages of TLS have any length during a request", pkg: "server", attack: "TestAttackLongHandshakes",
		edits: in("server/handshake.go", "limit := int64(recordBytes)", "limit := int64(1 << 40)")},
	{name: "a connection outlives the token that it was used with", pkg: "server", attack: "TestAttackConnectionsOutliveRefusals",
		edits: in("server/reading.go", "return c.running && status == http.StatusUnauthorized", "return status == 0 && http.StatusOK == 0")},
	{name: "headers have any number of fields", pkg: "server", attack: "TestAttackManyFields",
		edits: in("server/gate.go", "		if fields > maxFields {\n			s.refuse", "		if fields < 0 {\n			s.refuse")},
	{name: "names of fields to come do not count", pkg: "server", attack: "TestAttackManyFields",
		edits: in("server/gate.go", "n := len(r.Trailer)", "n := 0")},
	{name: "net/http gets headers of any number of fields", pkg: "server", attack: "TestAttackManyHeaders",
		edits: in("server/reading.go", "return h.lines > 1+maxFields", "return h.lines < 0")},
	{name: "clients may choose HTTP/2", pkg: "server", attack: "TestOnlyHTTP1/protocols_of_the_program",
		edits: append(in("server/handshake.go", "config.NextProtos = []string{\"http/1.1\"}", ""), in("server/server.go", "	protocols.SetHTTP1(true)\n", "	protocols.SetHTTP1(true)\n	protocols.SetHTTP2(true)\n")...)},
	{name: "a stop closes one connection after another", pkg: "server", attack: "TestAttackKeyUpdatesDelayTheStop", hangs: true,
		edits: in("server/server.go", "			held.dropAll() // net", "			// net")},
	{name: "results are sent after a revocation", pkg: "server/rest", attack: "TestAttackAnswersAfterRevocation",
		edits: in("server/rest/calls.go", "		err = standing.Check(x.request.Context())\n", "		err = standing.Check(context.Background())\n")},
	{name: "calls wait for their users when they are forgotten", pkg: "server/mcp", attack: "TestAttackQuestionsOfABatch/guarded",
		edits: in("server/mcp/waiting.go", "		p.end(why)\n", "		_ = why\n")},
	{name: "a stop waits for users", pkg: "server/mcp", attack: "TestDrainEndsQuestions",
		edits: in("server/mcp/waiting.go", "w.forgetThose(errClosed, func(paused) bool { return true })", "w.forgetThose(errClosed, func(paused) bool { return false })")},
	{name: "sessions may have subscriptions that last", pkg: "server/mcp", attack: "TestAttackListens/over_HTTP",
		edits: in("server/mcp/http.go", "!= \"\", isStateless, hold)", "!= \"\", true, hold)")},
	{name: "a client over lines may have any number of subscriptions", pkg: "server/mcp", attack: "TestAttackListens/over_lines",
		edits: in("server/mcp/lines.go", "len(w.listen) >= maxListens", "len(w.listen) < 0")},
	{name: "a change of tools is told to one client after another", pkg: "server/mcp", attack: "TestAttackUnreadChanges/sessions",
		edits: in("server/mcp/tools.go", "method != toolsChanged || !ok {", "method != toolsChanged || !ok || true {")},
	{name: "the end of an MCP session waits for its calls", pkg: "server/mcp", attack: "TestDeletedSessions/a_call",
		edits: in("server/mcp/http.go", "		s.endSession(r.Context(), caller, id)\n", "		_ = s.endSession\n")},
	{name: "the token is checked only before a handler of MCP", pkg: "server/mcp", attack: "TestAttackRevokedBeforeTheEffect",
		edits: in("server/mcp/server.go", "if err := s.web.check(request.GetExtra()); err != nil {", "if err := s.web.check(request.GetExtra()); err != nil && false {")},

	{name: "states are read whatever their length", pkg: "executor", attack: "TestAttackLargeState",
		edits: in("executor/state.go", "if bytes > MaxStateBytes {", "if bytes < 0 {")},
}

// in is one edit of a file.
func in(file, old, without string) []overlay.Edit {
	return []overlay.Edit{{File: file, Old: old, New: without}}
}

// paidBefore has code behind calls charged before them, and the verifier accept that.
var paidBefore = []overlay.Edit{
	{File: "runtime/internal/wasm/pass_fuel.go", Old: "	p.split(b, in)\n}\n\nfunc (p *fuelPass) loop", New: "	run.resets = false\n	p.shorten(b, in)\n}\n\nfunc (p *fuelPass) loop"},
	{File: "runtime/internal/wasm/metered/body.go", Old: "if callee != callee.meet(leaf) {", New: "if false {"},
	{File: "runtime/internal/wasm/metered/body.go", Old: "b.balance > maxAhead", New: "b.balance > maxAhead<<20"},
}

// unlooked makes validation ignore its context after the value is decoded.
var unlooked = in("internal/schema/meter.go", "if err := ended(m.ctx); err != nil {", "if err := ended(m.ctx); err != nil && false {")

// unchecked opens cache files of any type and reads them to the end.
var unchecked = []overlay.Edit{
	{File: "runtime/internal/engine/store_files.go",
		Old: "(*os.File, error) {\n	f, info, err := hostfile.Open(file, hostfile.NoFollow)\n", New: "(*os.File, error) {\n	f, err := os.Open(file)\n"},
	{File: "runtime/internal/engine/store_files.go", Old: "if info.Size() != b.Bytes {", New: "if info, err := f.Stat(); err != nil {"},
	{File: "runtime/internal/engine/store_files.go", Old: "digestOf(io.LimitReader(f, b.Bytes))", New: "digestOf(f)"},
}

// unmeasured compiles each module once, whatever its functions take of the stack.
var unmeasured = in("runtime/internal/engine/frames.go", "	if !recursive && excess <= mostExcess {", "	if !recursive || excess < mostExcess {")

// oldest ends the session of a tenant that was unused for longest, regardless of its token.
var oldest = in("server/sessions/sessions.go", "of[o.token] > of[first.token] || of[o.token] == of[first.token] &&\n			k.used", "k.used")

// unbound leaves callees out of what an approval covers.
var unbound = in("executor/effect.go", "string(reached), ", "")

// masking leaves out one form of a secret.
func masking(form, old, without, encoder string) guardFault {
	return guardFault{name: "not masked: " + form, pkg: "hostfuncs/secrets", attack: "TestMaskFindsEveryForm/" + encoder,
		edits: in("internal/masking/forms.go", old, without)}
}

// oneGuardIn says which guards are taken out: each by default, or the first of so many.
var oneGuardIn = flag.Int("one-guard-in", 1, "take out the first of `N` guards")

// testsOf returns the text of each function in a package's tests as attacks are built, with the tag slow, and all of it
// with spaces instead of underscores.
func testsOf(t *testing.T, pkg string) (functions map[string]string, text string) {
	context := build.Default
	context.BuildTags, context.CgoEnabled = []string{"slow"}, false
	found, err := context.ImportDir(pkg, 0)
	require.NoError(t, err)
	functions = map[string]string{}
	for _, name := range append(found.TestGoFiles, found.XTestGoFiles...) {
		content, err := os.ReadFile(filepath.Join(pkg, name))
		require.NoError(t, err)
		for _, f := range regexp.MustCompile(`(?ms)^func (\w+)[\[(].*?(\n}|}$)`).FindAllSubmatch(content, -1) {
			functions[string(f[1])] = string(f[0])
		}
		text += strings.ReplaceAll(string(content), "_", " ")
	}
	return functions, text
}

// misnamed says in what an attack's name is not that of a test which certainly runs. Names of subtests may be composed
// of texts and numbers, so that only these are looked for.
func misnamed(attack string, functions map[string]string, text string) error {
	test, subtests, one := strings.Cut(attack, "/")
	if functions[test] == "" {
		return fmt.Errorf("there is no test %s", test)
	}
	reached := functions[test]
	for _, called := range regexp.MustCompile(`\w+`).FindAllString(reached, -1) {
		reached += functions[called]
	}
	if !one && regexp.MustCompile(`testsize\.\w*Sample`).MatchString(reached) {
		return fmt.Errorf("%s runs a sample: name the subtest that must be among it", test)
	}
	for _, part := range regexp.MustCompile(`\d+|[^\d/,:]+`).FindAllString(subtests, -1) {
		if part = strings.TrimSpace(strings.ReplaceAll(part, "_", " ")); !strings.Contains(text, part) {
			return fmt.Errorf("%s has no subtest with %q in its name", test, part)
		}
	}
	return nil
}

// TestFaultsOfGuards: each attack's test passes with the guard and fails without it.
func TestFaultsOfGuards(t *testing.T) {
	run := func(t *testing.T, f guardFault, overlaid ...string) (string, error) {
		var levels []string // patterns match any part of a subtest's name
		for i, level := range strings.Split(f.attack, "/") {
			if i == 0 {
				level = "^" + level + "$"
			}
			levels = append(levels, level)
		}
		// Each run links a program of its own, which takes a third less time without C and debugging information.
		arguments := append([]string{"test", "-tags=slow", "-vet=off", "-ldflags=-s", "-timeout=30s", "-count=1", "-run",
			strings.Join(levels, "/")}, overlaid...) // what passed once without its guard, by chance, must not be remembered
		command := exec.CommandContext(t.Context(), "go", append(arguments, "./"+f.pkg)...)
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := command.CombinedOutput()
		return string(out), err
	}
	functions, texts := map[string]map[string]string{}, map[string]string{}
	for i, f := range guardFaults {
		if functions[f.pkg] == nil {
			functions[f.pkg], texts[f.pkg] = testsOf(t, f.pkg)
		}
		t.Run(f.name, func(t *testing.T) {
			require.NoError(t, misnamed(f.attack, functions[f.pkg], texts[f.pkg]))
			t.Parallel()
			path, err := overlay.Write(t.TempDir(), ".", f.edits)
			require.NoError(t, err)
			if i%*oneGuardIn != 0 {
				return // its edit has its place, at least
			}
			out, err := run(t, f)
			require.NoError(t, err, out)
			require.NotContains(t, out, "no tests to run")
			overlaid := []string{"-overlay", path}
			if f.hangs {
				overlaid = append(overlaid, "-timeout=5s")
			}
			for range 3 { // attacks that race for time do not succeed every time
				if out, err = run(t, f, overlaid...); err != nil {
					break
				}
			}
			require.Error(t, err)
			test, _, _ := strings.Cut(f.attack, "/")
			if f.hangs {
				assert.Contains(t, out, "panic: test timed out")
				assert.Contains(t, out, "\t"+test)
				return
			}
			assert.Contains(t, out, "--- FAIL: "+test)
			assert.NotContains(t, out, "panic:")
		})
	}
}

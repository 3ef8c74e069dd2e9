package engine

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
	"github.com/caisson-run/caisson/runtime/internal/wasm/metered"
)

// maxTableElements is the maximum number of elements in all tables of an instance together, at 8
// bytes each.
const maxTableElements = 1 << 20

// rewritten is a module in the form in which it is compiled.
type rewritten struct {
	source []byte
	meter  string // the exported global that counts fuel; empty if it is another module's
	depth  string // the exported global that counts stack; empty without recursion
	shift  int    // added to the indices of the module's own functions
	start  bool   // a start function is exported as wasm.StartName

	globals      []string // exported globals that the guest can change
	unrestorable string   // why an instance cannot be reset; empty if it can
	forks        bool     // it can be resumed at its first read, see wasm.Passes.Fork

	data     []byte // the data segments that were left out, packed
	dataKept bool   // the data segments were not left out; source has them

	frames []wasm.Frame // the estimated frames, until they are compared with the code
}

// role is the purpose for which a module is compiled.
type role struct {
	trusted bool // in this process, without limits on compilation
	linked  bool // with the counter of the first module that it is linked with
	// libraries is the number of the module's libraries. They and the module share the bound on the stack.
	libraries int
}

// unbounded allows modules of any complexity. The resources of an instance stay bounded.
func unbounded() wasm.Bounds {
	const any = math.MaxInt
	return wasm.Bounds{BlockDepth: any, Blocks: any, Branches: any, ControlSquares: any, BlockLocals: any,
		BranchTargets:    any,
		AllBranchTargets: any, StackMoves: any, FunctionGlobals: any, ZeroShifts: any, Tests: any}
}

// inspectOwn reads a rewritten module. The original was within the bounds, but rewriting adds to
// it.
func inspectOwn(source []byte) (*wasm.Module, error) {
	const any = math.MaxInt32
	return wasm.InspectWithin(source,
		wasm.Bounds{Types: any, TypeValues: any, Imports: any, Functions: any, Globals: any, Exports: any,
			BodyBytes: any, Locals: any, LocalsPerFunction: any})
}

// rewriteWithin transforms a module into the form that is compiled. The result returns to Go at least once per slice,
// where it can be stopped. Its recursion and its tables are bounded. It runs nothing during instantiation. Its data
// segments are kept separately. It has no custom sections, whose counts wazero trusts. The original is validated first,
// within the bounds, so that no invalid module can become valid. Calls nest through all modules that are linked with it
// on one stack, so each gets an equal part of it. Functions are taken for the given frames at least.
func rewriteWithin(
	ctx context.Context, source []byte, description *wasm.Module, bounds wasm.Bounds, in role, frames []int64,
) (rewritten, error) {
	analysis, err := wasm.ValidateWithin(ctx, source, description, bounds, wasm.Features{})
	if err != nil {
		return rewritten{}, err
	}
	if analysis.Overrun != nil { // wazero v1.12.0 accepts this
		return rewritten{}, analysis.Overrun
	}
	passes, err := wasm.Rewrite(ctx, source, analysis, wasm.Passes{
		Meter: true, Linked: in.linked, Globals: true, Data: true, Fork: true,
		Depth: true, StackBytes: wasm.DefaultStackBytes / int64(1+in.libraries), Frames: frames,
	})
	if err != nil {
		return rewritten{}, err
	}
	r := rewritten{source: passes.Source, meter: passes.MeterGlobal, depth: passes.DepthGlobal,
		shift: passes.FunctionShift, start: description.Start.Present,
		unrestorable: passes.Unrestorable, forks: passes.Forks,
		data: packData(passes.Data), dataKept: passes.DataKept != "", frames: passes.Frames}
	for _, global := range passes.Globals {
		r.globals = append(r.globals, global.Name)
	}
	if description, err = inspectOwn(r.source); err != nil {
		return rewritten{}, err
	}
	if r.source, err = wasm.ExportStart(r.source, description); err != nil {
		return rewritten{}, err
	}
	for _, change := range [...]func([]byte, *wasm.Module) []byte{boundTables, wasm.RaiseMemory} {
		if description, err = inspectOwn(r.source); err != nil {
			return rewritten{}, err
		}
		r.source = change(r.source, description)
	}
	switch err := metered.Verify(ctx, r.source); {
	case err != nil && ctx.Err() != nil:
		return rewritten{}, err
	case err != nil:
		return rewritten{}, fmt.Errorf("cannot prove that every loop in the module can be stopped: %w; "+
			"this is a bug in Caisson, please report it", err)
	}
	return r, nil
}

func boundTables(source []byte, m *wasm.Module) []byte {
	return wasm.BoundTables(source, m, maxTableElements)
}

// frame matches a function without a name in a trace.
var frame = regexp.MustCompile(`\.\$(\d+)\(`)

// original returns a trace with function names where the module has them, and the indices of the
// original module elsewhere.
func (r rewritten) original(trace string, names map[uint32]string) string {
	return frame.ReplaceAllStringFunc(trace, func(text string) string {
		index, err := strconv.Atoi(strings.Trim(text, ".$("))
		if err != nil || index < r.shift {
			return text
		}
		if name := names[uint32(index-r.shift)]; name != "" {
			return name + "("
		}
		return fmt.Sprintf("$%d(", index-r.shift)
	})
}

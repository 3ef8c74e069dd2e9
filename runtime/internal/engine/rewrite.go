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
	data   []byte       // the data segments that were left out, packed
	frames []wasm.Frame // the estimated frames, until they are compared with the code
	facts
}

// facts are what the engine must know about a rewritten module, as the store keeps them.
type facts struct {
	Meter string `json:"meter"` // the exported global that counts fuel; empty if it is another module's
	Depth string `json:"depth"` // the exported global that counts stack; empty without recursion
	Shift int    `json:"shift"` // added to the indices of the module's own functions
	Start bool   `json:"start"` // a start function is exported as wasm.StartName

	Globals      []string `json:"globals"`      // exported globals that the guest can change
	Unrestorable string   `json:"unrestorable"` // why an instance cannot be reset; empty if it can
	Forks        bool     `json:"forks"`        // it can be resumed at its first read, see wasm.Passes.Fork
	DataKept     bool     `json:"data_kept"`    // the data segments were not left out; the source has them
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
	r := rewritten{source: passes.Source, data: packData(passes.Data), frames: passes.Frames, facts: facts{
		Meter: passes.MeterGlobal, Depth: passes.DepthGlobal, Shift: passes.FunctionShift, Start: description.Start.Present,
		Unrestorable: passes.Unrestorable, Forks: passes.Forks, DataKept: passes.DataKept != ""}}
	for _, global := range passes.Globals {
		r.Globals = append(r.Globals, global.Name)
	}
	if description, err = inspectOwn(r.source); err != nil {
		return rewritten{}, err
	}
	if r.source, err = wasm.ExportStart(r.source, description); err != nil {
		return rewritten{}, err
	}
	boundTables := func(source []byte, m *wasm.Module) []byte { return wasm.BoundTables(source, m, maxTableElements) }
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

// frame matches a function without a name in a trace.
var frame = regexp.MustCompile(`\.\$(\d+)\(`)

// original returns a trace with function names where the module has them, and the indices of the
// original module elsewhere.
func (r rewritten) original(trace string, names map[uint32]string) string {
	return frame.ReplaceAllStringFunc(trace, func(text string) string {
		index, err := strconv.Atoi(strings.Trim(text, ".$("))
		if err != nil || index < r.Shift {
			return text
		}
		if name := names[uint32(index-r.Shift)]; name != "" {
			return name + "("
		}
		return fmt.Sprintf("$%d(", index-r.Shift)
	})
}

package engine

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
	"github.com/caisson-run/caisson/runtime/internal/wasm/metered"
)

// maxTableElements is how many elements the tables of an instance may hold together, at
// 8 bytes each.
const maxTableElements = 1 << 20

// rewritten is a module as it is compiled.
type rewritten struct {
	source []byte
	meter  string // the exported global that counts work
	depth  string // the exported global that counts the stack; empty without recursion
	shift  int    // by how much the indices of the module's own functions grew
	start  bool   // a start function is exported as wasm.StartName

	globals      []string // exported globals that the guest can change
	unrestorable string   // why an instance cannot be reset; empty if it can
	forks        bool     // it can be resumed where it first reads, see wasm.Passes.Fork

	data     []byte // the data segments that are left out, packed
	dataKept bool   // they are not: source has them
}

// rewrite makes of a module what is compiled: it comes back to Go at least once a slice,
// where it can be stopped, its recursion and its tables are bounded, it runs nothing when it
// is instantiated, the data segments are kept beside it, and it has no custom sections, whose counts wazero trusts. The original is validated first, so that nothing
// invalid can become valid.
func rewrite(source []byte, description *wasm.Module) (rewritten, error) {
	return rewriteWithin(source, description, wasm.Bounds{})
}

// unbounded admits modules of any complexity. What an instance would pay for stays bounded.
func unbounded() wasm.Bounds {
	const any = math.MaxInt
	return wasm.Bounds{BlockDepth: any, Blocks: any, Branches: any, ControlSquares: any, BlockLocals: any, AllBlockLocals: any,
		BranchTargets: any, AllBranchTargets: any, StackMoves: any}
}

// inspectOwn reads a module that was rewritten, and so has more than the original, which was
// within the bounds.
func inspectOwn(source []byte) (*wasm.Module, error) {
	const any = math.MaxInt32
	return wasm.InspectWithin(source, wasm.Bounds{Types: any, Imports: any, Functions: any, Globals: any, Exports: any,
		BodyBytes: any, Locals: any, LocalsPerFunction: any})
}

func rewriteWithin(source []byte, description *wasm.Module, bounds wasm.Bounds) (rewritten, error) {
	analysis, err := wasm.ValidateWithin(source, description, bounds, wasm.Features{})
	if err != nil {
		return rewritten{}, err
	}
	if analysis.Overrun != nil { // which wazero v1.12.0 lets pass
		return rewritten{}, analysis.Overrun
	}
	passes, err := wasm.Rewrite(source, analysis, wasm.Passes{Meter: true, Depth: true, Globals: true, Data: true, Fork: true})
	if err != nil {
		return rewritten{}, err
	}
	r := rewritten{source: passes.Source, meter: passes.MeterGlobal, depth: passes.DepthGlobal, shift: passes.FunctionShift, start: description.Start.Present,
		unrestorable: passes.Unrestorable, forks: passes.Forks,
		data: packData(passes.Data), dataKept: passes.DataKept != ""}
	for _, global := range passes.Globals {
		r.globals = append(r.globals, global.Name)
	}
	if description, err = inspectOwn(r.source); err != nil {
		return rewritten{}, err
	}
	if r.source, err = wasm.ExportStart(r.source, description); err != nil {
		return rewritten{}, err
	}
	if len(description.Tables) > 0 {
		if description, err = inspectOwn(r.source); err != nil {
			return rewritten{}, err
		}
		r.source = wasm.BoundTables(r.source, description, maxTableElements/uint32(len(description.Tables)))
	}
	if err := metered.Verify(r.source); err != nil {
		return rewritten{}, fmt.Errorf("it cannot be shown that every loop of the module can be stopped, so it is not run: %w; this is a bug in Caisson, please report it", err)
	}
	return r, nil
}

// frame is how a trace names a function without a name.
var frame = regexp.MustCompile(`\.\$(\d+)\(`)

// original returns a trace with the functions' names, where the module has any, and with
// the indices of the original module elsewhere.
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

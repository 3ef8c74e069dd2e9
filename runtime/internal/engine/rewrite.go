package engine

import "github.com/caisson-run/caisson/runtime/internal/wasm"

// maxTableElements is how many elements the tables of an instance may hold together, at
// 8 bytes each.
const maxTableElements = 1 << 20

// rewritten is a module as it is compiled.
type rewritten struct {
	source []byte
	depth  string // the exported global that counts the stack; empty without recursion
}

// rewrite makes of a module what is compiled: its recursion and its tables are bounded,
// and it has no custom sections, whose counts wazero trusts. The original is validated
// first, so that nothing invalid can become valid.
func rewrite(source []byte, description *wasm.Module) (rewritten, error) {
	analysis, err := wasm.Validate(source, description)
	if err != nil {
		return rewritten{}, err
	}
	passes, err := wasm.Rewrite(source, analysis, wasm.Passes{Depth: true})
	if err != nil {
		return rewritten{}, err
	}
	if len(description.Tables) == 0 {
		return rewritten{passes.Source, passes.DepthGlobal}, nil
	}
	if description, err = wasm.Inspect(passes.Source); err != nil {
		return rewritten{}, err
	}
	bounded := wasm.BoundTables(passes.Source, description, maxTableElements/uint32(len(description.Tables)))
	return rewritten{bounded, passes.DepthGlobal}, nil
}

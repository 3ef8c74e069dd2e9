package registry_test

import (
	"context"
	"fmt"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// greeter is a tool that runs in this process.
type greeter struct{ manifest *manifests.Manifest }

func (g greeter) Manifest() *manifests.Manifest { return g.manifest }

func (g greeter) Invoke(context.Context, tool.Invocation) (tool.Outcome, error) {
	return tool.Outcome{Result: tool.Result{Success: true, Output: "hello from " + g.manifest.File}}, nil
}

// The first tool that registers a name keeps it, and rejected tools are reported.
func Example() {
	ctx := context.Background()
	r := registry.New()
	for _, file := range []string{"ours/tool.yaml", "theirs/tool.yaml"} {
		manifest, err := manifests.Parse(file, []byte(`
schema: caisson/v1
name: greet
description: Greets.
module: {path: greet.wasm}
`))
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := r.Register(file, greeter{manifest}); err != nil {
			fmt.Println(err)
		}
	}
	outcome, err := r.Invoke(ctx, tool.Invocation{Tool: "greet"})
	fmt.Println(outcome.Result.Output, err)
	fmt.Println(r.Close(ctx))
	// Output:
	// "greet" of theirs/tool.yaml is kept out: the name is taken by "greet" of ours/tool.yaml
	// hello from ours/tool.yaml <nil>
	// <nil>
}

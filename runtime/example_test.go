package runtime_test

import (
	"context"
	"fmt"
	"log"
	"path/filepath"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// shipped returns the manifest of a tool that comes with Caisson.
func shipped(folder, name string) *manifests.Manifest {
	root, err := guests.Compile(context.Background(), "wasm-tools/"+folder)
	if err != nil {
		log.Fatal(err)
	}
	m, err := manifests.Load(filepath.Join(root, "wasm-tools", folder, name))
	if err != nil {
		log.Fatal(err)
	}
	return m
}

// A runtime makes a tool of a manifest and what is granted to it.
func ExampleRuntime_Load() {
	ctx := context.Background()
	rt, err := runtime.New(ctx, runtime.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close(ctx)
	calculator, err := rt.Load(ctx, shipped("calculator", "tool.yaml"), manifests.Grants{})
	if err != nil {
		log.Fatal(err)
	}
	arguments, err := tool.ParseArguments(`{"expression": "6 * 7"}`)
	if err != nil {
		log.Fatal(err)
	}
	outcome, err := calculator.Invoke(ctx, tool.Invocation{CallID: "1", Tool: "calculator", Arguments: arguments})
	fmt.Println(outcome.Result.Output, err)
	// Output: 42 <nil>
}

// Decisions say what became of each permission that a manifest asks for.
func ExampleTool_Decisions() {
	ctx := context.Background()
	rt, err := runtime.New(ctx, runtime.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close(ctx)
	read, err := rt.Load(ctx, shipped("files", "file_read.tool.yaml"), manifests.Grants{})
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range read.Decisions() {
		fmt.Printf("%s %s: %q %s\n", d.Permission, d.Requested, d.Effective, d.Allow.Grant)
	}
	// Output:
	// files /project (read): "" {"tools":["file_read"],"files":[{"path":"/project","host":null,"access":"read"}]}
	// context project_id: "" {"tools":["file_read"],"context":["project_id"]}
}

func ExampleInspectModule() {
	info, err := runtime.InspectModule(shipped("calculator", "tool.yaml"))
	fmt.Println(info.Bytes > 0, len(info.SHA256), info.Unused, err)
	// Output: true 64 [] <nil>
}

// A program offers functions to Extism plug-ins. A manifest requests them, and a grant lets them be
// called: permissions: {functions: [double]} and grants: [{tools: [my_plugin], functions: [double]}].
func ExampleHostFunction() {
	double := runtime.HostFunction{
		Name: "double", Params: []hostfuncs.ValueType{hostfuncs.I64}, Results: []hostfuncs.ValueType{hostfuncs.I64},
		Call: func(ctx context.Context, plugin *runtime.CurrentPlugin, stack []uint64) error {
			text, err := plugin.ReadString(stack[0])
			if err != nil {
				return err
			}
			stack[0], err = plugin.WriteString(text + text)
			return err
		},
	}
	ctx := context.Background()
	rt, err := runtime.New(ctx, runtime.Options{HostFunctions: []runtime.HostFunction{double}})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close(ctx)
	fmt.Println(double.PermissionName())
	// Output: double
}

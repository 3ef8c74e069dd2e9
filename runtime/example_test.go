package runtime_test

import (
	"context"
	"fmt"
	"log"
	"os/exec"
	"path/filepath"
	"strings"

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

// A runtime makes a tool from a manifest and the grants to it. It keeps the machine code in a folder, so that later
// processes need not compile the module.
func ExampleRuntime_Load() {
	ctx := context.Background()
	_, folder, err := guests.CompiledCode()
	if err != nil {
		log.Fatal(err)
	}
	rt, err := runtime.New(ctx, runtime.Options{CacheDir: folder})
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

// Decisions returns the decision about each permission that a manifest requests.
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
// called: permissions: {functions: [host.to_upper]} and grants: [{tools: [greet], functions: [host.to_upper]}].
func ExampleHostFunction() {
	upper := runtime.HostFunction{
		Namespace: "host", Name: "to_upper", Params: []hostfuncs.ValueType{hostfuncs.I64}, Results: []hostfuncs.ValueType{hostfuncs.I64},
		Call: func(ctx context.Context, plugin *runtime.CurrentPlugin, stack []uint64) error {
			text, err := plugin.ReadString(stack[0])
			if err != nil {
				return err
			}
			stack[0], err = plugin.WriteString(strings.ToUpper(text))
			return err
		},
	}
	ctx := context.Background()
	rt, err := runtime.New(ctx, runtime.Options{HostFunctions: []runtime.HostFunction{upper}})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close(ctx)
	granted := manifests.Grants{Functions: []manifests.NameGrant{{Name: upper.PermissionName()}}}
	greet, err := rt.Load(ctx, greeter(), granted)
	if err != nil {
		log.Fatal(err)
	}
	arguments, err := tool.ParseArguments(`{"name": "reader"}`)
	if err != nil {
		log.Fatal(err)
	}
	outcome, err := greet.Invoke(ctx, tool.Invocation{CallID: "1", Tool: "greet", Arguments: arguments})
	fmt.Println(outcome.Result.Output, err)
	// Output: HELLO READER! <nil>
}

// greeter returns the manifest of a plug-in of go-sdk that imports to_upper of "host", and requests it.
func greeter() *manifests.Manifest {
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/extism/go-sdk").Output()
	if err != nil {
		log.Fatal(err)
	}
	m, err := manifests.Parse(filepath.Join(strings.TrimSpace(string(folder)), "wasm", "greet.tool.yaml"), []byte(`
schema: caisson/v1
name: greet
description: Greets a person.
module: {path: host_memory.wasm, abi: extism, entry: run_test, stdin: "{name}", stdout: text}
parameters: {properties: {name: {type: string}}, required: [name]}
permissions: {functions: [host.to_upper]}
`))
	if err != nil {
		log.Fatal(err)
	}
	return m
}

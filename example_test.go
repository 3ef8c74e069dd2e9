package caisson_test

import (
	"context"
	"fmt"
	"log"
	"path/filepath"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// calculator returns the folder of a tool that comes with Caisson.
func calculator() string {
	root, err := guests.Compile(context.Background(), "wasm-tools/calculator")
	if err != nil {
		log.Fatal(err)
	}
	return filepath.Join(root, "wasm-tools", "calculator")
}

func expression(id, text string) tool.Call {
	return tool.Call{ID: id, Function: tool.Function{Name: "calculator", Arguments: fmt.Sprintf(`{"expression": %q}`, text)}}
}

// A host runs the tool calls of a model's response.
func ExampleOpen() {
	ctx := context.Background()
	host, err := caisson.Open(ctx, caisson.Options{Tools: []string{calculator()}})
	if err != nil {
		log.Fatal(err)
	}
	defer host.Close(ctx)
	report, err := host.Execute(ctx, executor.Batch{Calls: []tool.Call{expression("call_1", "2 * (3 + 4.5)"), expression("call_2", "2 *")}})
	if err != nil {
		log.Fatal(err)
	}
	for _, record := range report.Records {
		fmt.Println(record.ID, record.Result.Success, record.Result.Output)
	}
	// Output:
	// call_1 true 15
	// call_2 false
}

// Sessions hold context values that no model can set, and narrow down which tools there are.
func ExampleHost_NewSession() {
	ctx := context.Background()
	host, err := caisson.Open(ctx, caisson.Options{Tools: []string{calculator()}})
	if err != nil {
		log.Fatal(err)
	}
	defer host.Close(ctx)
	session, err := host.NewSession(executor.SessionOptions{Tenant: "acme", Allowed: []string{"file_read"}})
	if err != nil {
		log.Fatal(err)
	}
	report, err := host.Execute(ctx, executor.Batch{Session: session, Calls: []tool.Call{expression("call_1", "1 + 1")}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Records[0].Result.Kind)
	// Output: denied
}

// Events tell what happens while a batch runs.
func ExampleHost_Stream() {
	ctx := context.Background()
	host, err := caisson.Open(ctx, caisson.Options{Tools: []string{calculator()}})
	if err != nil {
		log.Fatal(err)
	}
	defer host.Close(ctx)
	_, err = host.Stream(ctx, executor.Batch{Calls: []tool.Call{expression("call_1", "6 * 7")}}, func(e tool.Event) bool {
		fmt.Println(e.Type)
		return true
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// batch_started
	// call_started
	// call_finished
	// batch_finished
}

// A batch pauses where a call needs approval, and is resumed with the answer.
func ExampleHost_Resume() {
	ctx := context.Background()
	policy := &manifests.Policy{Ask: []manifests.PolicyAsk{{Tool: "calculator"}}}
	host, err := caisson.Open(ctx, caisson.Options{Tools: []string{calculator()}, Policies: []*manifests.Policy{policy}})
	if err != nil {
		log.Fatal(err)
	}
	defer host.Close(ctx)
	report, err := host.Execute(ctx, executor.Batch{Calls: []tool.Call{expression("call_1", "6 * 7")}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Status)
	asked := report.Pending[0]
	fmt.Println("Run", asked.Call.Function.Name, asked.Call.Function.Arguments)
	report, err = host.Resume(ctx, executor.Resumption{
		State: *report.State, Approvals: []tool.Approval{{CallID: asked.CallID, Approve: true, Fingerprint: asked.Fingerprint}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Status, report.Records[0].Result.Output)
	// Output:
	// requires_action
	// Run calculator {"expression": "6 * 7"}
	// completed 42
}

// Definitions are what a model is offered.
func ExampleHost_Definitions() {
	ctx := context.Background()
	host, err := caisson.Open(ctx, caisson.Options{Tools: []string{calculator()}})
	if err != nil {
		log.Fatal(err)
	}
	defer host.Close(ctx)
	for _, definition := range host.Definitions() {
		fmt.Println(definition.Name, definition.Hints.ReadOnly)
	}
	// Output: calculator true
}

// What a policy says that applies to no tool is likely to be a slip.
func ExampleHost_Unapplied() {
	ctx := context.Background()
	policy := &manifests.Policy{Grants: []manifests.Grant{{Tools: []string{"calculator"}, Env: []manifests.EnvGrant{{Name: "LANG", Value: "C"}}}}}
	host, err := caisson.Open(ctx, caisson.Options{Tools: []string{calculator()}, Policies: []*manifests.Policy{policy}})
	if err != nil {
		log.Fatal(err)
	}
	defer host.Close(ctx)
	for _, u := range host.Unapplied() {
		fmt.Printf("%s: %s\n", u.Key, u.Text)
	}
	// Output: grants[0].env.LANG: no tool that gets it asks for the variable LANG
}

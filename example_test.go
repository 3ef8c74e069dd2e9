package caisson_test

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"path/filepath"
	"strings"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/native"
	"github.com/caisson-run/caisson/tool"
)

// calculator returns the folder of one of Caisson's tools.
func calculator() string {
	root := must(guests.Compile(context.Background(), "wasm-tools/calculator"))
	return filepath.Join(root, "wasm-tools", "calculator")
}

// readSkill returns the manifest of Caisson's tool that reads skills.
func readSkill() string {
	root := must(guests.Compile(context.Background(), "wasm-tools/skills"))
	return filepath.Join(root, "wasm-tools", "skills", "read_skill.tool.yaml")
}

func expression(id, text string) tool.Call {
	return tool.Call{ID: id, Function: tool.Function{Name: "calculator", Arguments: fmt.Sprintf(`{"expression": %q}`, text)}}
}

// opened returns a host of the calculator with policies.
func opened(ctx context.Context, policies ...*manifests.Policy) *caisson.Host {
	return must(caisson.Open(ctx, caisson.Options{Tools: []string{calculator()}, Policies: policies}))
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

// A program calls one tool. The tool gets the directory because its manifest requests it and the policy grants it.
func Example() {
	ctx := context.Background()
	skills := manifests.GrantDirectory("/skills", "testdata/skills", manifests.AccessRead)
	grant := manifests.Grant{Tools: []string{"read_skill"}, Grants: manifests.Grants{Files: []manifests.FileGrant{skills}}}
	policies := []*manifests.Policy{{Grants: []manifests.Grant{grant}}}
	host := must(caisson.Open(ctx, caisson.Options{Tools: []string{readSkill()}, Policies: policies}))
	defer host.Close(ctx)
	record := must(host.Call(ctx, "read_skill", `{"skill_name": "greeting", "file_path": "words.txt"}`))
	fmt.Println(record.Result.Output)
	// Output: Good morning!
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

// A Go function can be a tool, in addition to those in sandboxes.
func ExampleHost_Registry() {
	ctx := context.Background()
	host := opened(ctx)
	defer host.Close(ctx)
	shout, err := native.New(native.About{Name: "shout", Description: "Say a text loudly.", Category: "text"},
		func(_ context.Context, a struct{ Text string }) (string, error) { return strings.ToUpper(a.Text), nil })
	if err != nil {
		log.Fatal(err)
	}
	if err := host.Registry().Register("program", shout); err != nil {
		log.Fatal(err)
	}
	report, err := host.Execute(ctx, executor.Batch{Calls: []tool.Call{
		expression("call_1", "6 * 7"),
		{ID: "call_2", Function: tool.Function{Name: "shout", Arguments: `{"Text": "forty-two"}`}},
		{ID: "call_3", Function: tool.Function{Name: "shout", Arguments: `{"Txet": "forty-two"}`}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	for _, record := range report.Records {
		fmt.Println(record.ID, cmp.Or(record.Result.Output, string(record.Result.Kind)))
	}
	// Output:
	// call_1 42
	// call_2 FORTY-TWO
	// call_3 invalid_arguments
}

// A session holds context values that no model can set, and may restrict the tools.
func ExampleHost_NewSession() {
	ctx := context.Background()
	host := opened(ctx)
	defer host.Close(ctx)
	session := must(host.NewSession(executor.SessionOptions{Tenant: "acme", Allowed: []string{"file_read"}}))
	report := must(host.Execute(ctx, executor.Batch{Session: session, Calls: []tool.Call{expression("call_1", "1 + 1")}}))
	fmt.Println(report.Records[0].Result.Kind)
	// Output: denied
}

// A catalogue is for people who choose tools; the definitions for the model come from the same tools.
func ExampleHost_Catalogue() {
	ctx := context.Background()
	host := opened(ctx)
	defer host.Close(ctx)
	for _, agentHas := range [][]string{{"calculator"}, {}} {
		catalogue := host.Catalogue(agentHas)
		t := catalogue.Tools[0]
		fmt.Printf("%s: %s allowed: %t, offered to the model: %d\n", t.Label, t.Summary, t.Allowed, len(catalogue.Definitions()))
	}
	// Output:
	// Calculator: Computes with numbers, exactly where that is possible. allowed: true, offered to the model: 1
	// Calculator: Computes with numbers, exactly where that is possible. allowed: false, offered to the model: 0
}

// Events report what happens while a batch runs.
func ExampleHost_Stream() {
	ctx := context.Background()
	host := opened(ctx)
	defer host.Close(ctx)
	must(host.Stream(ctx, executor.Batch{Calls: []tool.Call{expression("call_1", "6 * 7")}}, func(e tool.Event) bool {
		fmt.Println(e.Type)
		return true
	}))
	// Output:
	// batch_started
	// call_started
	// call_finished
	// batch_finished
}

// A batch pauses when a call needs approval, and is resumed with the decision.
func ExampleHost_Resume() {
	ctx := context.Background()
	policy := &manifests.Policy{Ask: []manifests.PolicyAsk{{Tool: "calculator"}}}
	host := opened(ctx, policy)
	defer host.Close(ctx)
	report := must(host.Execute(ctx, executor.Batch{Calls: []tool.Call{expression("call_1", "6 * 7")}}))
	fmt.Println(report.Status)
	asked := report.Pending[0]
	fmt.Println("Run", asked.Call.Function.Name, asked.Call.Function.Arguments)
	report = must(host.Resume(ctx, executor.Resumption{
		State: *report.State, Approvals: []tool.Approval{{CallID: asked.CallID, Approve: true, Fingerprint: asked.Fingerprint}},
	}))
	fmt.Println(report.Status, report.Records[0].Result.Output)
	// Output:
	// requires_action
	// Run calculator {"expression": "6 * 7"}
	// completed 42
}

// Definitions are the tools as offered to a model.
func ExampleHost_Definitions() {
	ctx := context.Background()
	host := opened(ctx)
	defer host.Close(ctx)
	for _, definition := range host.Definitions() {
		fmt.Println(definition.Name, definition.Hints.ReadOnly)
	}
	// Output: calculator true
}

// A policy entry that applies to no tool is probably a mistake.
func ExampleHost_Unapplied() {
	ctx := context.Background()
	policy := &manifests.Policy{Grants: []manifests.Grant{{Tools: []string{"calculator"}, Grants: manifests.Grants{Env: []manifests.EnvGrant{{Name: "LANG", Value: "C"}}}}}}
	host := opened(ctx, policy)
	defer host.Close(ctx)
	for _, u := range host.Unapplied() {
		fmt.Printf("%s: %s\n", u.Key, u.Text)
	}
	// Output: grants[0].env.LANG: no tool that it applies to asks for the variable LANG
}

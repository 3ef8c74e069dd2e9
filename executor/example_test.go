package executor_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// greeter is a tool written in Go.
type greeter struct{ manifest *manifests.Manifest }

func (g greeter) Manifest() *manifests.Manifest { return g.manifest }

func (g greeter) Invoke(_ context.Context, call tool.Invocation) (tool.Outcome, error) {
	name, _ := call.Arguments.Get("name")
	if err := call.Host.Emit(tool.Emission{Type: tool.EmitText, Text: "looking for " + string(name)}); err != nil {
		return tool.Outcome{}, err
	}
	return tool.Outcome{Result: tool.Result{Success: true, Output: "hello " + string(name)}}, nil
}

// greeting returns an executor of the tool "greet" with this behavior.
func greeting(behavior string) *executor.Executor {
	manifest, err := manifests.Parse("greet.tool.json", []byte(`{
		"schema": "caisson/v1", "name": "greet", "description": "Greets a person.", "module": {"path": "greet.wasm"},
		"parameters": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
		"behavior": `+behavior+`
	}`))
	if err != nil {
		log.Fatal(err)
	}
	tools, err := registry.New().With(greeter{manifest})
	if err != nil {
		log.Fatal(err)
	}
	e, err := executor.New(tools, executor.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return e
}

func greet(arguments string) tool.Call {
	return tool.Call{Function: tool.Function{Name: "greet", Arguments: arguments}}
}

// A batch has one record for each call. A call that fails does not affect other calls, and its error is worded
// for the model.
func ExampleExecutor_Execute() {
	e := greeting(`{"read_only": true}`)
	report, err := e.Execute(context.Background(), executor.Batch{Calls: []tool.Call{
		greet(`{"name": "Ada"}`), greet(`{}`), {Function: tool.Function{Name: "great"}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	for _, record := range report.Records {
		fmt.Println(record.Result.Success, record.Result.Output+record.Result.Error)
	}
	// Output:
	// true hello "Ada"
	// false name: required, but missing
	// false there is no tool "great"; did you mean greet?
}

// A call of a destructive tool pauses its batch until the call is approved.
func ExampleExecutor_Resume() {
	e, ctx := greeting(`{"destructive": true}`), context.Background()
	report, err := e.Execute(ctx, executor.Batch{Calls: []tool.Call{greet(`{"name": "Ada"}`)}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Status)
	var approvals []tool.Approval
	for _, action := range report.Pending {
		fmt.Println(action.Tool, string(action.Arguments))
		approvals = append(approvals, tool.Approval{CallID: action.CallID, Approve: true, Fingerprint: action.Fingerprint})
	}
	report, err = e.Resume(ctx, executor.Resumption{State: *report.State, Session: report.Session, Approvals: approvals})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Status, report.Records[0].Result.Output)
	// Output:
	// requires_action
	// greet {"name":"Ada"}
	// completed hello "Ada"
}

// An identical call of a read-only tool is a cache hit, in all sessions of the tenant.
func ExampleReuse() {
	e := greeting(`{"read_only": true, "cache": "1m"}`)
	for range 2 {
		report, err := e.Execute(context.Background(), executor.Batch{Calls: []tool.Call{greet(`{"name": "Ada"}`)}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(report.Records[0].Result.Output, report.Records[0].Cached)
	}
	// Output:
	// hello "Ada" false
	// hello "Ada" true
}

// A subscription has the events of all batches.
func ExampleExecutor_Subscribe() {
	e, ctx := greeting(`{"read_only": true}`), context.Background()
	subscription, err := e.Subscribe(executor.SubscribeOptions{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := e.Execute(ctx, executor.Batch{Calls: []tool.Call{greet(`{"name": "Ada"}`)}}); err != nil {
		log.Fatal(err)
	}
	subscription.Close()
	for {
		event, _, err := subscription.Next(ctx)
		if err != nil { // io.EOF, after the last event
			break
		}
		fmt.Println(event.Type)
	}
	// Output:
	// batch_started
	// call_started
	// call_finished
	// batch_finished
}

// One goroutine runs a batch, and another reads its progress.
func ExampleStream() {
	e, ctx := greeting(`{"read_only": true}`), context.Background()
	stream, err := executor.NewStream(executor.StreamOptions{})
	if err != nil {
		log.Fatal(err)
	}
	var batch sync.WaitGroup
	batch.Go(func() {
		if _, err := e.Execute(ctx, executor.Batch{Calls: []tool.Call{greet(`{"name": "Ada"}`)}, Stream: stream}); err != nil {
			log.Print(err)
		}
	})
	for event, err := range stream.Events(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.Type)
		if event.Type == tool.CallOutput {
			fmt.Println("  ", event.Emission.Text)
		}
	}
	batch.Wait()
	// Output:
	// batch_started
	// call_started
	// call_output
	//    looking for "Ada"
	// call_finished
	// batch_finished
}

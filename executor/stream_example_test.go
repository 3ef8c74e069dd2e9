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

// counter is a tool that counts aloud.
type counter struct{ manifest *manifests.Manifest }

func newCounter() (*counter, error) {
	manifest, err := manifests.Parse("count.tool.json", []byte(`{
		"schema": "caisson/v1", "name": "count", "description": "Counts to three.", "module": {"path": "count.wasm"}
	}`))
	return &counter{manifest}, err
}

func (c *counter) Manifest() *manifests.Manifest { return c.manifest }

func (c *counter) Invoke(_ context.Context, call tool.Invocation) (tool.Outcome, error) {
	for _, word := range []string{"one", "two", "three"} {
		if err := call.Host.Emit(tool.Emission{Type: tool.EmitText, Text: word}); err != nil {
			return tool.Outcome{}, err
		}
	}
	return tool.Outcome{Result: tool.Result{Success: true, Output: "3"}}, nil
}

// One goroutine runs a batch, and another reads meanwhile what its calls say.
func ExampleStream() {
	count, err := newCounter()
	if err != nil {
		log.Fatal(err)
	}
	tools, err := registry.New().With(count)
	if err != nil {
		log.Fatal(err)
	}
	runs, err := executor.New(tools, executor.Options{})
	if err != nil {
		log.Fatal(err)
	}
	stream, err := executor.NewStream(executor.StreamOptions{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	var report executor.Report
	var batch sync.WaitGroup
	batch.Go(func() {
		calls := []tool.Call{{ID: "call_1", Function: tool.Function{Name: "count", Arguments: "{}"}}}
		report, err = runs.Execute(ctx, executor.Batch{Calls: calls, Stream: stream})
	})
	for event, err := range stream.Events(ctx) {
		switch {
		case err != nil:
			log.Print(err)
		case event.Type == tool.CallOutput:
			fmt.Println("  ", event.Emission.Text)
		default:
			fmt.Println(event.Type)
		}
	}
	batch.Wait()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Records[0].Result.Output)
	// Output:
	// batch_started
	// call_started
	//    one
	//    two
	//    three
	// call_finished
	// batch_finished
	// 3
}

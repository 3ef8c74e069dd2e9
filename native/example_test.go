package native_test

import (
	"context"
	"fmt"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/native"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

func ExampleNew() {
	add, err := native.New(native.About{Name: "add", Description: "Add two numbers.", Category: "math"},
		func(_ context.Context, a struct{ A, B float64 }) (float64, error) { return a.A + a.B, nil })
	if err != nil {
		fmt.Println(err)
		return
	}
	tools, err := registry.New().With(add)
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := executor.New(tools, executor.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	call := tool.Call{ID: "call_1", Type: tool.FunctionCall, Function: tool.Function{Name: "add", Arguments: `{"A": 2, "B": 3}`}}
	report, err := e.Execute(context.Background(), executor.Batch{Calls: []tool.Call{call}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(report.Records[0].Result.Data))
	// Output: 5
}

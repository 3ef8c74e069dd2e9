package agents_test

import (
	"context"
	"fmt"
	"os"

	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/native"
	"github.com/caisson-run/caisson/registry"
)

func Example() {
	add, err := native.New(native.About{Name: "add", Description: "Add two numbers."},
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
	dir, err := os.MkdirTemp("", "agents")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()
	store, err := agents.Open(ctx, dir, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close() }()
	fmt.Println(store.Save(ctx, "acme", agents.Agent{Name: "clerk", AllowedTools: []string{"ad"}}, tools))
	fmt.Println(store.Save(ctx, "acme", agents.Agent{Name: "clerk", AllowedTools: []string{"add"}}, tools))
	clerk, unknown, err := store.Load(ctx, "acme", "clerk", tools)
	fmt.Println(clerk.AllowedTools, unknown, err)
	// Output:
	// invalid agent: there is no tool ad; did you mean add?
	// <nil>
	// [add] [] <nil>
}

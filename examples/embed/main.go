// Command embed runs the tool calls of a model's response from a Go program.
package main

import (
	"context"
	"encoding/json"
	"os"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

func main() {
	ctx := context.Background()
	root := must(guests.Compile(ctx)) // a clone has no compiled tools; your program ships with its own
	rt := must(runtime.New(ctx, runtime.Options{CacheDir: must(runtime.DefaultCacheDir())}))
	project := manifests.FileGrant{Path: "/project", Host: must(os.MkdirTemp("", "embed-")), Access: manifests.ReadWrite}
	open := func(ctx context.Context, m *manifests.Manifest) (registry.Tool, error) {
		return rt.Load(ctx, m, manifests.Grants{Context: manifests.GrantContext(m.Context...), Files: []manifests.FileGrant{project}})
	}
	tools := registry.New() // the first tool of a name wins, so the folders you trust most come first
	must(0, tools.Load(ctx, registry.Directory(root+"/wasm-tools"), open))
	must(0, tools.Load(ctx, registry.Directory(root+"/examples/turn/hostile"), open))
	calls := must(tool.ParseCalls(must(os.ReadFile(root + "/examples/turn/response.json"))))
	run := must(executor.New(tools, executor.Options{}))
	session := must(run.NewSession(executor.SessionOptions{Context: map[string]string{"project_id": "household"}}))
	must(0, json.NewEncoder(os.Stdout).Encode(must(run.Execute(ctx, executor.Batch{Session: session, Calls: calls})).Records))
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

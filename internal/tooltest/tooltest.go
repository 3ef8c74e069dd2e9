// Package tooltest has what tests of packages that run tools share: a tool, a host, a log and a clock.
package tooltest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// Fields are keys of a manifest. Nil leaves a key out.
type Fields map[string]any

type Run func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error)

// Tool is a tool that runs in the test's process.
type Tool struct {
	Run Run

	manifest *manifests.Manifest
	lacks    atomic.Value
}

// New returns a tool whose manifest has a name, a description, a module and more keys.
func New(t testing.TB, name string, more Fields, run Run) *Tool {
	t.Helper()
	document := Fields{
		"schema": "caisson/v1", "name": name, "description": "Does " + name + ".", "module": Fields{"path": "tool.wasm"},
	}
	for key, value := range more {
		document[key] = value
		if value == nil {
			delete(document, key)
		}
	}
	source := noerr.Get(json.Marshal(document))(t)
	return &Tool{manifest: noerr.Get(manifests.Parse(name+".tool.json", source))(t), Run: run}
}

func (f *Tool) Manifest() *manifests.Manifest { return f.manifest }

// Lack makes the tool unavailable for a reason, or available for none.
func (f *Tool) Lack(reason string) { f.lacks.Store(reason) }

// Unavailable returns the reason of Lack.
func (f *Tool) Unavailable() string {
	reason, _ := f.lacks.Load().(string)
	return reason
}

func (f *Tool) Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	return f.Run(ctx, invocation)
}

// Succeed returns the outcome of a call that succeeds.
func Succeed(output string) tool.Outcome {
	return tool.Outcome{Result: tool.Result{Success: true, Output: output}}
}

// Echo is a [Run] that succeeds with the complete arguments as its output.
func Echo(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	text, err := invocation.Arguments.MarshalJSON()
	return Succeed(string(text)), err
}

// Call returns a call of a function.
func Call(id, name, arguments string) tool.Call {
	return tool.Call{ID: id, Type: tool.FunctionCall, Function: tool.Function{Name: name, Arguments: arguments}}
}

// Registry returns a registry of tools.
func Registry(t testing.TB, tools ...registry.Tool) *registry.Registry {
	t.Helper()
	return noerr.Get(registry.New().With(tools...))(t)
}

// Host opens a host with tools, which is closed when the test ends.
func Host(t testing.TB, options caisson.Options, tools ...registry.Tool) *caisson.Host {
	t.Helper()
	host := noerr.Get(caisson.Open(t.Context(), options))(t)
	t.Cleanup(func() {
		if err := host.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	for _, one := range tools {
		noerr.Check(t, host.Registry().Register("main.go", one))
	}
	return host
}

// Files writes files into a new folder, by their slash-separated names.
func Files(t testing.TB, content map[string]string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, text := range content {
		path := filepath.Join(folder, filepath.FromSlash(name))
		noerr.Check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		noerr.Check(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return folder
}

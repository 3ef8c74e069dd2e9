// Command turn runs one turn of an assistant: a model's response with eight tool calls, of which five
// are useful and three are attacks. It prints what goes back to the model, with the time and memory that
// each call used.
//
// The exit code is 0 if the five calls succeeded and the three attacks were contained.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// response is a chat completion as a provider sends it.
//
//go:embed response.json
var response []byte

// expected has the required outcome of each call. An empty kind is success.
var expected = []tool.Kind{"", "", "", "", "", tool.Denied, tool.Deadline, tool.Memory}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	compiler := runtime.ChildCompiler(ctx)
	if err := play(ctx, compiler, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "turn:", err)
		os.Exit(1)
	}
}

// play runs the turn. It writes the results to out, and each step that may take long to progress.
func play(ctx context.Context, compiler runtime.Compiler, out, progress io.Writer) (err error) {
	fmt.Fprintln(progress, "turn: compiling the tools to WebAssembly")
	root, err := guests.Compile(ctx, "wasm-tools/calculator", "wasm-tools/files", "examples/turn/hostile/hoard",
		"examples/turn/hostile/spin")
	if err != nil {
		return err
	}
	workspaces, err := os.MkdirTemp("", "caisson-turn-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(workspaces)) }()

	calls, err := tool.ParseCalls(response)
	if err != nil {
		return err
	}
	host, err := caisson.Open(ctx, caisson.Options{
		Tools:    []string{filepath.Join(root, "wasm-tools"), filepath.Join(root, "examples", "turn", "hostile")},
		Policies: []*manifests.Policy{policy(workspaces)}, Runtime: runtime.Options{Compiler: compiler},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close(ctx)) }()
	if err := prepare(ctx, host, calls, progress); err != nil {
		return err
	}
	fmt.Fprintf(progress, "turn: running %d calls\n", len(calls))
	ran, err := host.Execute(ctx, executor.Batch{Calls: calls})
	if err != nil {
		return err
	}
	return report(out, ran.Records)
}

// prepare compiles the modules of the called tools to machine code, all at a time. Otherwise the first call of each
// would wait for that.
func prepare(ctx context.Context, host *caisson.Host, calls []tool.Call, progress io.Writer) error {
	called := map[string]*runtime.Tool{}
	for _, call := range calls {
		if entry, ok := host.Registry().Get(call.Function.Name); ok {
			if t, ok := entry.Tool.(*runtime.Tool); ok {
				called[entry.Name] = t
			}
		}
	}
	fmt.Fprintf(progress, "turn: compiling %d tools to machine code, which is kept for later runs\n", len(called))
	type prepared struct {
		name string
		took time.Duration
		err  error
	}
	done := make(chan prepared)
	for name, t := range called {
		go func() {
			began := time.Now()
			err := t.Prepare(ctx)
			done <- prepared{name, time.Since(began), err}
		}()
	}
	var failed error
	for range called {
		p := <-done
		fmt.Fprintf(progress, "turn: %s is ready after %s\n", p.name, p.took.Round(time.Millisecond))
		failed = errors.Join(failed, p.err)
	}
	return failed
}

// policy grants file tools the project's directory and nothing else, as a caisson.yaml could.
func policy(workspaces string) *manifests.Policy {
	project := manifests.GrantDirectory("/project", filepath.Join(workspaces, "{project_id}"), manifests.AccessReadWrite)
	project.Quota.Bytes = 16 << 20
	return &manifests.Policy{
		Context: []manifests.ContextSource{{Name: "project_id", From: manifests.FromFixed, Value: "household"}},
		Grants: []manifests.Grant{{
			Tools:  []string{"*"},
			Grants: manifests.Grants{Context: manifests.GrantContext("project_id"), Files: []manifests.FileGrant{project}},
		}},
	}
}

func report(out io.Writer, records []tool.Record) error {
	useful, contained := 0, 0
	// A call waits for a place in the queue, for its module to be compiled, and for the host.
	fmt.Fprintf(out, "%-7s %-18s %-10s %8s %8s %10s  %s\n", "id", "tool", "outcome", "time", "waited", "memory",
		"what goes back to the model")
	for i, record := range records {
		outcome, text := "ok", record.Result.Output
		if !record.Result.Success {
			outcome, text = string(record.Result.Kind), record.Result.Error
		}
		fmt.Fprintf(out, "%-7s %-18s %-10s %8s %8s %10s  %s\n", record.ID, record.Function.Name, outcome,
			record.Usage.Wall.Round(100*time.Microsecond),
			(record.Usage.Queue + record.ExecutionTime - record.Usage.Wall).Round(100*time.Microsecond),
			manifests.Bytes(record.Usage.MemoryBytes), oneLine(text))
		switch {
		case i >= len(expected) || record.Result.Kind != expected[i]:
			return fmt.Errorf("call %s ended with kind %q; want %q: %s", record.ID, record.Result.Kind, expected[i], text)
		case record.Result.Success:
			useful++
		default:
			contained++
		}
	}
	_, err := fmt.Fprintf(out, "\n%d useful results, %d attacks contained\n", useful, contained)
	return err
}

func oneLine(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", " · ")
}

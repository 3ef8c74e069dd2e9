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
	"sync"
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

// expected is how each call must end. An empty kind is success.
var expected = []tool.Kind{"", "", "", "", "", tool.Denied, tool.Deadline, tool.Memory}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	compiler := runtime.ChildCompiler(ctx)
	if err := play(ctx, compiler, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "turn:", err)
		os.Exit(1)
	}
}

func play(ctx context.Context, compiler runtime.Compiler, out io.Writer) (err error) {
	root, err := guests.Compile(ctx)
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
	var preparing sync.WaitGroup
	defer preparing.Wait()
	for _, entry := range host.Registry().List() {
		if t, ok := entry.Tool.(*runtime.Tool); ok {
			// Compile while the first calls run. Their calls report modules that cannot be compiled.
			preparing.Go(func() { _ = t.Prepare(ctx) })
		}
	}
	ran, err := host.Execute(ctx, executor.Batch{Calls: calls})
	if err != nil {
		return err
	}
	return report(out, ran.Records)
}

// policy grants file tools the project's directory and nothing else, as a caisson.yaml could.
func policy(workspaces string) *manifests.Policy {
	return &manifests.Policy{
		Context: []manifests.ContextSource{{Name: "project_id", From: manifests.FromFixed, Value: "household"}},
		Grants: []manifests.Grant{{
			Tools: []string{"*"}, Context: manifests.GrantContext("project_id"),
			Files: []manifests.FileGrant{{
				Path: "/project", Host: filepath.Join(workspaces, "{project_id}"), Access: manifests.AccessReadWrite,
				Quota: manifests.Quota{Bytes: 16 << 20},
			}},
		}},
	}
}

func report(out io.Writer, records []tool.Record) error {
	useful, contained := 0, 0
	// A call waits for a place in the queue, for its module to be compiled, and for what the host does.
	fmt.Fprintf(out, "%-7s %-18s %-10s %8s %8s %10s  %s\n", "id", "tool", "outcome", "time", "waited", "memory", "what goes back to the model")
	for i, record := range records {
		outcome, text := "ok", record.Result.Output
		if !record.Result.Success {
			outcome, text = string(record.Result.Kind), record.Result.Error
		}
		fmt.Fprintf(out, "%-7s %-18s %-10s %8s %8s %10s  %s\n", record.ID, record.Function.Name, outcome,
			record.Usage.Wall.Round(100*time.Microsecond), (record.Usage.Queue + record.ExecutionTime - record.Usage.Wall).Round(100*time.Microsecond), manifests.Bytes(record.Usage.MemoryBytes), oneLine(text))
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

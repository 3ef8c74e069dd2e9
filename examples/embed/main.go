// Command embed reads a model's response from standard input, runs its tool calls with the tools and
// grants of caisson.yaml, and prints their records.
package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"os"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

func main() {
	ctx := context.Background()
	calls := must(tool.ParseCalls(must(io.ReadAll(os.Stdin))))
	host := must(caisson.Open(ctx, caisson.Options{PolicyFile: "caisson.yaml"}))
	report := must(host.Execute(ctx, executor.Batch{Calls: calls}))
	must(0, json.NewEncoder(os.Stdout).Encode(report.Records))
	must(0, host.Close(ctx))
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

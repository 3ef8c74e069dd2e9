// Command caisson runs untrusted tools for AI agents, each call in a sandbox of its own.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/caisson-run/caisson/runtime"
)

func main() {
	log.SetOutput(io.Discard) // what a library logs is for nobody who runs this command
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the work in good order; a second one ends the process.
	context.AfterFunc(ctx, stop)
	compiler := runtime.ChildCompiler(ctx)
	os.Exit(run(ctx, os.Args[1:], environment{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, compiler: compiler, exit: os.Exit}))
}

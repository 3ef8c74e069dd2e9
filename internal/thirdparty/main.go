// Command thirdparty fetches third-party programs, compiles them to WebAssembly where their registry does not hold
// modules, and measures them as Caisson's tools. A manifest in tools, and nothing else, makes each a tool. The command
// is a separate Go module, and fetched and built files are not part of the repository.
//
//	go run . build [NAME…]   fetch and build all programs, or those, unless they are up to date
//	go run . table           call all programs, and print docs/programs.md
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/caisson-run/caisson/runtime"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	compiler := runtime.ChildCompiler(ctx) // first: in a child it compiles, and does not return
	if err := run(ctx, compiler, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "thirdparty:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, compiler runtime.Compiler, args []string) error {
	w, err := newWorkshop()
	if err != nil {
		return err
	}
	switch {
	case len(args) > 0 && args[0] == "build":
		chosen, err := choose(args[1:])
		if err != nil {
			return err
		}
		return w.buildAll(ctx, chosen)
	case len(args) == 1 && args[0] == "table":
		text, err := w.table(ctx, compiler)
		if err == nil {
			_, err = os.Stdout.WriteString(text)
		}
		return err
	default:
		return fmt.Errorf("usage: go run . build [NAME…], or go run . table")
	}
}

// buildAll builds programs one after the other. It stops at the first that cannot be built: what is
// built by then is kept.
func (w workshop) buildAll(ctx context.Context, programs []program) error {
	if err := missing(programs); err != nil {
		return err
	}
	for _, p := range programs {
		began := time.Now()
		built, err := w.build(ctx, p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if built {
			fmt.Printf("%s: built in %s\n", p.name, time.Since(began).Round(time.Second))
		}
	}
	return nil
}

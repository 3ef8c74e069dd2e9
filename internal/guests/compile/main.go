// Command compile compiles the guest programs of the repository, all of them or those
// whose folders it is given.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/caisson-run/caisson/internal/guests"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if _, err := guests.Compile(ctx, os.Args[1:]...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

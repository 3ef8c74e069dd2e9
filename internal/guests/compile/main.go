// Command compile compiles the guest programs of the repository, all of them or those
// whose folders it is given. With -v, it names the packages that it compiles.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/caisson-run/caisson/internal/guests"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	verbose := flag.Bool("v", false, "print the names of packages as they are compiled")
	flag.Parse()
	var log io.Writer
	if *verbose {
		log = os.Stderr
	}
	if _, err := guests.CompileVerbosely(ctx, log, flag.Args()...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Command recursivecommand runs one of the kernels that recurse.
package main

import (
	"github.com/caisson-run/caisson/internal/benchmark/guests/go/command"
	"github.com/caisson-run/caisson/internal/benchmark/guests/go/kernels"
)

func main() {
	command.Main(map[string]kernels.Kernel{
		"fib": kernels.Fib, "ackermann": kernels.Ackermann, "tree_walk": kernels.TreeWalk, "evaluator": kernels.Evaluator,
		"sort": kernels.Sort, "parser": kernels.Parser, "mutual": kernels.Mutual, "table": kernels.Table,
	})
}

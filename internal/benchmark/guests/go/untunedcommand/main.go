// Command untunedcommand runs one of the kernels that metering was not tuned on.
package main

import (
	"github.com/caisson-run/caisson/internal/benchmark/guests/go/command"
	"github.com/caisson-run/caisson/internal/benchmark/guests/go/kernels"
)

func main() {
	command.Main(map[string]kernels.Kernel{
		"lz77": kernels.LZ77, "regex": kernels.Regex, "interpreter": kernels.Interpreter, "expression": kernels.Expression,
	})
}

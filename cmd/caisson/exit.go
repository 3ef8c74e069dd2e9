package main

import "github.com/caisson-run/caisson/tool"

// The exit codes, as the help of the root command lists them.
const (
	exitSuccess     = 0
	exitFailed      = 1
	exitUsage       = 2
	exitDenied      = 3
	exitLimit       = 4
	exitWaits       = 5
	exitInterrupted = 130 // 128 + SIGINT, as shells report it
)

// exitCode returns the exit code of a call that ended with the kind, and false for a
// kind that it does not know.
func exitCode(kind tool.Kind) (code int, known bool) {
	switch kind {
	case "":
		return exitSuccess, true
	case tool.ToolFailed, tool.Trap, tool.Internal:
		return exitFailed, true
	case tool.UnknownTool, tool.InvalidArguments:
		return exitUsage, true
	case tool.Denied:
		return exitDenied, true
	case tool.Deadline, tool.Memory, tool.Fuel, tool.Output, tool.Busy:
		return exitLimit, true
	case tool.Cancelled:
		return exitInterrupted, true
	}
	return exitFailed, false
}

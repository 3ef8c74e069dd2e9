package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/tool"
)

func TestEveryKindHasAnExitCode(t *testing.T) {
	wanted := map[tool.Kind]int{
		"": 0, tool.ToolFailed: 1, tool.Trap: 1, tool.Internal: 1,
		tool.UnknownTool: 2, tool.InvalidArguments: 2, tool.Denied: 3,
		tool.Deadline: 4, tool.Memory: 4, tool.Fuel: 4, tool.Output: 4, tool.Busy: 4,
		tool.Cancelled: 130,
	}
	for _, kind := range append(tool.Kinds(), "") {
		code, known := exitCode(kind)
		assert.True(t, known, "%q has no exit code", kind)
		assert.Equal(t, wanted[kind], code, "%q", kind)
		assert.Contains(t, rootHelp, fmt.Sprintf("\n  %-4d", code), "the help names the code of %q", kind)
	}
	for _, code := range []int{exitSuccess, exitWaits} {
		assert.Contains(t, rootHelp, fmt.Sprintf("\n  %-4d", code))
	}
	code, known := exitCode("made_up")
	assert.False(t, known)
	assert.Equal(t, exitFailed, code)
}

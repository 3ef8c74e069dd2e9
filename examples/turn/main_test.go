package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/runtime"
)

func TestTurn(t *testing.T) {
	require.NoError(t, guests.ShareCompiledCode(t.Context()))
	var out, progress bytes.Buffer
	require.NoError(t, play(t.Context(), runtime.Compiler{}, &out, &progress))
	for _, want := range []string{
		"wrote 25 bytes to notes/budget.md", "notes/budget.md (25 bytes)", "rent 1249.90 · food 389.15", "1639.05", "19668.6",
		"denied", "/etc/passwd", "deadline of 250ms", "memory than its limit of 48MiB",
		"5 useful results, 3 attacks contained",
	} {
		assert.Contains(t, out.String(), want)
	}
	assert.NotContains(t, out.String(), "root:", "nothing of the file that was asked for")
	for _, step := range []string{
		"turn: compiling the tools to WebAssembly\n", "turn: compiling 6 tools to machine code", "turn: calculator is ready after ", "turn: slow_report is ready after ", "turn: running 8 calls\n",
	} {
		assert.Contains(t, progress.String(), step)
	}
}

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/tool"
)

func TestEmbed(t *testing.T) {
	var stderr strings.Builder
	command := exec.CommandContext(t.Context(), "go", "run", ".")
	command.Stderr = &stderr
	out, err := command.Output()
	require.NoError(t, err, stderr.String())
	var records []tool.Record
	require.NoError(t, json.Unmarshal(out, &records))
	var kinds []tool.Kind
	for _, record := range records {
		kinds = append(kinds, record.Result.Kind)
	}
	assert.Equal(t, []tool.Kind{"", "", "", "", "", tool.Denied, tool.Deadline, tool.Memory}, kinds)
}

// TestEmbedIsShort keeps the promise of the README.
func TestEmbedIsShort(t *testing.T) {
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	assert.Less(t, strings.Count(string(source), "\n"), 40)
}

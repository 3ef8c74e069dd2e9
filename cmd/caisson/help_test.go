package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
)

// TestHelpIsWrapped: lines of help fit a terminal, and those of a paragraph break only where the next
// word would not fit, so that none is missing an empty line.
func TestHelpIsWrapped(t *testing.T) {
	const least, most = 80, 92
	var check func(command *cobra.Command)
	check = func(command *cobra.Command) {
		lines := strings.Split(command.Long, "\n")
		for i, line := range lines {
			assert.LessOrEqual(t, utf8.RuneCountInString(line), most, "%s: %s", command.Name(), line)
			if i+1 == len(lines) || line == "" || strings.HasPrefix(line, " ") {
				continue
			}
			next, _, _ := strings.Cut(lines[i+1], " ")
			if next != "" {
				assert.Greater(t, utf8.RuneCountInString(line+" "+next), least, "%s: %s\n%s", command.Name(), line, lines[i+1])
			}
		}
		for _, child := range command.Commands() {
			check(child)
		}
	}
	check(newRoot(environment{}))
}

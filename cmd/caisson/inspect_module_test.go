package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/runtime"
)

// TestManyFunctionsAreNotAllPrinted: a module may export tens of thousands.
func TestManyFunctionsAreNotAllPrinted(t *testing.T) {
	plugin := func(count int) string {
		shown := recognised{File: "a.wasm", recognised: runtime.Recognised{Kind: runtime.ModulePlugin}}
		for i := range count {
			shown.Functions = append(shown.Functions, fmt.Sprintf("f%d", i))
		}
		return shown.text()
	}
	assert.Contains(t, plugin(3), "functions    f0 f1 f2\n")
	assert.Contains(t, plugin(shownFunctions), " f39\n")
	assert.Contains(t, plugin(100_000), " f39 and 99960 more\n")
}

package main

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/wasm-tools/internal/corpus"
	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/documents"
)

// BenchmarkTools runs the tools outside the sandbox, over 20 MB or the project in the folder CORPUS, so that they can
// be profiled. The targets for the sandbox are in ../knowledge_test.go.
func BenchmarkTools(b *testing.B) {
	root := os.Getenv("CORPUS")
	if root == "" {
		root = b.TempDir()
		_, err := corpus.Write(root, 20<<20)
		require.NoError(b, err)
	}
	for operation, a := range map[string]arguments{
		"grep": {Patterns: []string{"absent words"}},
	} {
		b.Run(operation, func(b *testing.B) {
			for b.Loop() {
				tools := &tools{project: documents.Project{Root: root}, now: time.Now, deadline: time.Now().Add(time.Hour)}
				_, err := tools.do(operation, a)
				require.NoError(b, err)
			}
		})
	}
}

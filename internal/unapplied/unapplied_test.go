package unapplied_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/unapplied"
	"github.com/caisson-run/caisson/manifests"
)

func near(string) []string { return []string{"reader"} }

func reader(t *testing.T) []*manifests.Manifest {
	t.Helper()
	m, err := manifests.Parse("reader/tool.yaml", []byte(`schema: caisson/v1
name: reader
description: Reads.
module: {path: reader.wasm}
permissions: {files: [{path: /project, access: read}]}
`))
	require.NoError(t, err)
	return []*manifests.Manifest{m}
}

// TestPoliciesComeOneAfterTheOther: each policy is checked, and its findings have its own keys.
func TestPoliciesComeOneAfterTheOther(t *testing.T) {
	file, err := manifests.ParsePolicy("caisson.yaml", []byte(`schema: caisson-config/v1
grants:
  - {tools: [raeder], files: [{path: /project, host: .}]}
  - {tools: [reader], files: [{path: /project, host: .}]}
deny: [{tools: [reader], env: LANG}]
`))
	require.NoError(t, err)
	program := &manifests.Policy{
		Grants: []manifests.Grant{{Tools: []string{"*"}, Files: []manifests.FileGrant{{Binding: manifests.Binding{Origin: "main.go"}, Path: "/other", Host: "."}}}},
		Ask:    []manifests.PolicyAsk{{Origin: "main.go", Tool: "writer"}},
	}
	assert.Equal(t, []unapplied.Finding{
		{"grants[0].tools[0]", "caisson.yaml:3", `there is no tool "raeder" here`, "did you mean reader?"},
		{"deny[0]", "caisson.yaml:5", "it has no effect, because none of its tools asks for the variable LANG", "write a name that a manifest asks for, or remove it"},
		{"grants[0].files[0]", "main.go", "no tool that it applies to asks for the directory /other", "write a guest path that a manifest asks for, or remove it"},
		{"ask[0]", "main.go", `there is no tool "writer" here`, "did you mean reader?"},
	}, unapplied.In([]*manifests.Policy{file, program}, reader(t), near))
	assert.Empty(t, unapplied.In([]*manifests.Policy{file, program}, nil, near), "without tools there is nothing to compare with")
}

package names_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/names"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
)

func TestTheFirstOfANameHasIt(t *testing.T) {
	known := names.New()
	require.NoError(t, known.Add(described(t, "a/tool.yaml", "read")))
	require.NoError(t, known.Add(described(t, "b/tool.yaml", "read")), "that is what Duplicates is for")
	require.Len(t, known.Duplicates(), 1)
	assert.Equal(t, registry.Origin{Name: "read", Source: "b/tool.yaml", File: "b/tool.yaml"}, known.Duplicates()[0].Dropped)
	assert.Equal(t, []string{"read"}, known.Nearest("raed", 3))
	require.ErrorIs(t, known.Add(&manifests.Manifest{}), registry.ErrInvalidTool)
}

func described(t *testing.T, file, name string) *manifests.Manifest {
	t.Helper()
	m, err := manifests.Parse(file, []byte("schema: caisson/v1\nname: "+name+"\ndescription: Reads.\nmodule: {path: read.wasm}\n"))
	require.NoError(t, err)
	return m
}

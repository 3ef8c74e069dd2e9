package keypath_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/internal/keypath"
)

func TestPaths(t *testing.T) {
	assert.Equal(t, "limits", keypath.Key("", "limits"))
	assert.Equal(t, "limits.memory", keypath.Key("limits", "memory"))
	assert.Equal(t, `files["/a.b"]`, keypath.Key("files", "/a.b"))
	assert.Equal(t, `[""]`, keypath.Key("", ""))
	assert.Equal(t, "args[2]", keypath.Index("args", 2))
	assert.Equal(t, "parameters.type", keypath.Join("parameters", "type"))
	assert.Equal(t, "parameters[0]", keypath.Join("parameters", "[0]"))
	assert.Equal(t, "parameters", keypath.Join("parameters", ""))
	assert.Equal(t, "type", keypath.Join("", "type"))
}

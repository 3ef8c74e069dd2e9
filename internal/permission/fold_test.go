package permission_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/internal/permission"
)

func TestFoldName(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "X-Api-Key": "x-api-key", "x_api.KEY": "x-api-key", "X~Api*9": "x-api-9",
		"\u212ay\xffz": "-y-z", // the sign of Kelvin is no K
	} {
		assert.Equal(t, want, permission.FoldName(name), "%q", name)
		assert.Equal(t, strings.ReplaceAll(want, "-", ""), permission.FoldHeader(name), "%q", name)
	}
}

package permit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/tool"
)

// TestClimbingArguments: the paths are texts and elements of lists, and few, however many the model writes.
func TestClimbingArguments(t *testing.T) {
	for text, want := range map[string][]string{
		`{"path":"../a"}`: {"../a"}, `{"path":"` + strings.Repeat("../", 2000) + `a"}`: nil, `{"a":["b","../c"],"d":"../e"}`: {"../c", "../e"}, `{"a":"/x/../y","b":{"c":"../d"},"e":1,"f":[1,"../g"],"h":"/x/y"}`: {"/x/../y"},
		`{"many":[` + strings.Repeat(`"../a",`, 1000) + `"../b"]}`: {"../a", "../a", "../a", "../a", "../a", "../a", "../a", "../a"},
	} {
		arguments, err := tool.ParseArguments(text)
		require.NoError(t, err)
		assert.Equal(t, want, climbingArguments(arguments), text)
	}
}

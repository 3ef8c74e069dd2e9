package guests_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommittedModulesAreSmall(t *testing.T) {
	for language, most := range map[string]int64{"c": 100 << 10, "rust": 200 << 10} {
		for _, form := range []string{"kernels", "kernelcommand", "untuned", "untunedcommand", "recursive", "recursivecommand", "tool", "plugin"} {
			info, err := os.Stat(language + "/" + form + ".wasm")
			require.NoError(t, err)
			require.Less(t, info.Size(), most, "%s %s", language, form)
		}
	}
}

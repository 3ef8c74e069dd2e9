package manifests_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden parses every manifest in testdata and compares the reported problems with the .golden file next to it.
// Those in valid have none.
func TestGolden(t *testing.T) {
	testGolden(t, "testdata/*/*.*", func(file string, source []byte) error {
		_, err := manifests.Parse(file, source)
		return err
	})
}

// TestPolicyGolden does the same for policies.
func TestPolicyGolden(t *testing.T) {
	testGolden(t, "testdata/policy/*/*.*", func(file string, source []byte) error {
		_, err := manifests.ParsePolicy(file, source)
		return err
	})
}

func testGolden(t *testing.T, pattern string, parse func(file string, source []byte) error) {
	inputs, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, inputs)
	for _, input := range inputs {
		if strings.HasSuffix(input, ".golden") {
			continue
		}
		t.Run(filepath.Base(input), func(t *testing.T) {
			source := must(os.ReadFile(input))
			err = parse(filepath.Base(input), source)
			if filepath.Base(filepath.Dir(input)) == "valid" {
				require.NoError(t, err)
				return
			}
			compareGolden(t, input+".golden", err)
		})
	}
}

func compareGolden(t *testing.T, golden string, err error) {
	var invalid *manifests.Error
	require.True(t, errors.As(err, &invalid), "want an *Error, got %v", err)
	var got strings.Builder
	for _, p := range invalid.Problems {
		assert.NotEmpty(t, p.Fix)
		got.WriteString(string(p.Kind) + " " + p.String() + "\n")
	}
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got.String()), 0o644))
	}
	assert.Equal(t, string(must(os.ReadFile(golden))), got.String())
}

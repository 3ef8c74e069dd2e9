package hostfuncs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// attackRow says which tests hold one attack off, and which show that it works where
// nothing does. A test is named by its folder and its function.
type attackRow struct {
	attack   string
	guards   []string
	controls []string
	// uncontrolled says why there is nothing to show, where there are no controls.
	uncontrolled string
}

// Where tests are.
const (
	files   = "hostfuncs/files."
	network = "hostfuncs/network."
	secrets = "hostfuncs/secrets."
	calls   = "hostfuncs/calls."
	streams = "hostfuncs/stream."
	guest   = "runtime." // through a guest that makes raw calls
	abi     = "runtime/internal/abi."
	wazero  = "runtime/internal/engine."

	vocabulary = "tool."
)

// TestEveryAttackHasItsTests: the tests that the rows name are there.
func TestEveryAttackHasItsTests(t *testing.T) {
	folders := map[string][]string{}
	var seen []string
	for _, row := range slices.Concat(attacksOnFiles(), attacksOnNetworks(), attacksByCalls(), attacksByStreams()) {
		assert.NotContains(t, seen, row.attack)
		seen = append(seen, row.attack)
		assert.NotEmpty(t, row.guards, row.attack)
		assert.NotEqual(t, len(row.controls) == 0, row.uncontrolled == "", "%s: controls, or why there are none", row.attack)
		for _, name := range slices.Concat(row.guards, row.controls) {
			folder, function, found := strings.Cut(name, ".")
			require.True(t, found, name)
			if folders[folder] == nil {
				folders[folder] = testsOf(t, folder)
			}
			assert.Contains(t, folders[folder], function, "%s: %s", row.attack, folder)
		}
	}
}

// testsOf returns the names of the tests and fuzz tests of a folder, on any system.
func testsOf(t *testing.T, folder string) (names []string) {
	t.Helper()
	sources, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(folder), "*_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, sources)
	set := token.NewFileSet()
	for _, source := range sources {
		syntax, err := parser.ParseFile(set, source, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, declared := range syntax.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

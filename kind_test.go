//go:build slow

package caisson_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/overlay"
)

// TestOneMoreKindOfPermission builds this repository with an additional kind of permission: to know the
// time in a zone. It takes two new files and changes to two existing ones: the kind's fields, and a row in each
// of the two tables. testdata/kind/clock_test.go tests the result.
func TestOneMoreKindOfPermission(t *testing.T) {
	source := func(name string) string {
		text := noerr.Get(os.ReadFile("testdata/kind/" + name))(t)
		return string(text)
	}
	path := noerr.Get(overlay.Write(t.TempDir(), ".", []overlay.Edit{
		{File: "hostfuncs/clock/clock.go", New: source("clock.go")},
		{File: "manifests/permission_clock.go", New: source("permission_clock.go")},

		{File: "manifests/kinds.go", Old: "languageModel()}", New: "languageModel(), clock()}"},
		{File: "manifests/kinds.go", Old: "type Permissions struct {\n", New: "type Permissions struct {\n	Clock []string\n"},
		{File: "manifests/kinds.go", Old: "type Grants struct {\n", New: "type Grants struct {\n	Clock []NameGrant\n"},
		{File: "manifests/kinds.go", Old: "type Deny struct {\n", New: "type Deny struct {\n	Clock string\n"},

		{File: "runtime/internal/permit/kinds.go", Old: `	"github.com/caisson-run/caisson/hostfuncs"` + "\n", New: `	"github.com/caisson-run/caisson/hostfuncs"` + "\n" + `	"github.com/caisson-run/caisson/hostfuncs/clock"` + "\n"},
		{File: "runtime/internal/permit/kinds.go", Old: "	return []Kind{\n", New: `	return []Kind{
		{
			Name: "clock", Asked: func(m *manifests.Manifest) bool { return len(m.Permissions.Clock) > 0 },
			Module: clock.Module, Functions: clock.Functions, uses: []string{clock.Module + "."},
			decide: func(_ *Permit, o Options) (Enforcer, error) {
				return clock.New(o.Manifest, o.Grants, o.Module), nil
			},
		},
`},

		{File: "clock_test.go", New: source("clock_test.go")},
	}))(t)
	output, err := exec.CommandContext(t.Context(), "go", "test", "-trimpath", "-vet=off", "-overlay", path, "-run", "^TestClock", "-count=1", ".").CombinedOutput()
	require.NoError(t, err, string(output))
	require.Contains(t, string(output), "ok", "the tests ran")
}

package permit

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/internal/permission/permissiontest"
)

// mountUse is a use of a mount by a call.
type mountUse struct {
	path  string
	write bool
}

// TestDecideFiles: decisions about files agree with a few plain comparisons.
func TestDecideFiles(t *testing.T) {
	paths := []string{"/", "/a", "/a/b", "/ab", "/c"}
	var uses []mountUse
	for _, path := range paths {
		uses = append(uses, mountUse{path, false}, mountUse{path, true})
	}
	draw := func(random *rand.Rand, below bool) permissiontest.Line[mountUse] {
		text, write := paths[random.IntN(len(paths))], random.IntN(2) == 0
		path, err := permission.ParseGuestPath(text)
		require.NoError(t, err)
		return permissiontest.Line[mountUse]{
			Rule: fileRule{path: path, write: write, below: below}, Text: fmt.Sprint(text, write),
			Matches: func(u mountUse) bool {
				inside := u.path == text || below && strings.HasPrefix(u.path, strings.TrimSuffix(text, "/")+"/")
				return inside && u.write == write
			},
		}
	}
	at := func(random *rand.Rand) permissiontest.Line[mountUse] { return draw(random, false) }
	sample := permissiontest.Sample[mountUse]{
		Request: at, Grant: at, Denial: func(random *rand.Rand) permissiontest.Line[mountUse] { return draw(random, true) }, Uses: uses,
		Matches: func(rule permission.Rule, u mountUse) bool {
			mount := rule.(fileRule)
			return mount.path.String() == u.path && mount.write == u.write
		},
	}
	for seed := range uint64(20) {
		permissiontest.Check(t, sample, seed)
	}
	nothing := fileRule{}
	require.False(t, nothing.Covers(nothing))
}

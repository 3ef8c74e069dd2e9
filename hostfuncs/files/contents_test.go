package files_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
)

// TestContentsAreSharedAndBounded: equal files of trees count once, and as long as a tree is held that has them.
func TestContentsAreSharedAndBounded(t *testing.T) {
	const size, names = 100_000, 10_000 // names are for what a tree takes besides the contents
	treeOf := func(contents map[string]string) *files.Tree { return must(files.NewTree(mapFS(contents))) }
	long := func(text string) string { return strings.Repeat(text, size) }
	contents := files.NewContents(2*size + names)
	first := treeOf(map[string]string{"a": long("a"), "b": long("a"), "c/d": ""})
	require.NoError(t, contents.Hold(first))
	second := treeOf(map[string]string{"d/a": long("a"), "b": long("b")})
	require.NoError(t, contents.Hold(second))
	assert.Equal(t, long("a"), must(read(preopen(t, treeView(t, second), "/tool"), "d/a")))

	third := map[string]string{"c": long("c")}
	err := contents.Hold(treeOf(third))
	require.ErrorIs(t, err, files.ErrTree)
	assert.ErrorContains(t, err, "more than 210000 bytes together")
	contents.Release(first)
	require.Error(t, contents.Hold(treeOf(third)), "the second tree has the content, too")
	contents.Release(second)
	assert.Equal(t, long("b"), must(read(preopen(t, treeView(t, second), "/tool"), "b")), "calls may still use it")
	require.NoError(t, contents.Hold(treeOf(third)))
	require.NoError(t, contents.Hold(treeOf(map[string]string{"d": long("d")})))

	many := map[string]string{}
	for n := range 100 {
		many[strings.Repeat("n", n+1)] = ""
	}
	require.Error(t, contents.Hold(treeOf(many)), "names count")
	require.NoError(t, contents.Hold(treeOf(map[string]string{"e": ""})), "control")
}

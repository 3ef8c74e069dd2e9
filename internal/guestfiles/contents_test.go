package guestfiles

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestContentsAreSharedAndBounded: equal files of trees count once, and as long as a tree is held that has them.
func TestContentsAreSharedAndBounded(t *testing.T) {
	const size, names = 100_000, 10_000 // names are for what a tree takes besides the contents
	long := func(text string) string { return strings.Repeat(text, size) }
	contents := NewContents(2*size + names)
	first := treeOf(t, map[string]string{"a": long("a"), "b": long("a"), "c/d": ""})
	require.NoError(t, contents.Hold(first))
	second := treeOf(t, map[string]string{"d/a": long("a"), "b": long("b")})
	require.NoError(t, contents.Hold(second))
	assert.Equal(t, long("a"), read(t, second, "d/a"))

	third := map[string]string{"c": long("c")}
	err := contents.Hold(treeOf(t, third))
	require.ErrorIs(t, err, ErrTree)
	assert.ErrorContains(t, err, "more than 210000 bytes together")
	contents.Release(first)
	require.Error(t, contents.Hold(treeOf(t, third)), "the second tree has the content, too")
	contents.Release(second)
	assert.Equal(t, long("b"), read(t, second, "b"), "calls may still use it")
	require.NoError(t, contents.Hold(treeOf(t, third)))
	require.NoError(t, contents.Hold(treeOf(t, map[string]string{"d": long("d")})))

	many := map[string]string{}
	for n := range 100 {
		many[strings.Repeat("n", n+1)] = ""
	}
	require.Error(t, contents.Hold(treeOf(t, many)), "names count")
	require.NoError(t, contents.Hold(treeOf(t, map[string]string{"e": ""})), "control")
}

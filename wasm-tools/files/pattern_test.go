package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPatterns(t *testing.T) {
	for _, test := range []struct {
		pattern     string
		yes, no     []string
		isDeep, bad bool
	}{
		{pattern: "", yes: []string{"a", ".b", "c/d"}},
		{pattern: "*", yes: []string{"a", ".b", "c/d"}},
		{pattern: "*.md", yes: []string{"a.md", "b/c.md", ".md"}, no: []string{"a.txt", "a.md/b"}},
		{pattern: "[a-c]?", yes: []string{"a1", "x/b2"}, no: []string{"d1", "a"}},
		{pattern: "[!a-c]*", yes: []string{"d1", "x/!"}, no: []string{"a1", "x/b2"}},
		{pattern: "[^a-c]*", yes: []string{"d1", "!"}, no: []string{"a1"}},
		{pattern: "[!!]", yes: []string{"a"}, no: []string{"!"}},
		{pattern: "[a!][[!]", yes: []string{"![", "a!"}, no: []string{"b!", "!a"}},
		{pattern: `\[!a]`, yes: []string{"[!a]"}, no: []string{"b", "[b]"}},
		{pattern: `[\]!][!a]`, yes: []string{"]b", "!!"}, no: []string{"!a", "ab"}},
		{pattern: "x/[!.]*", yes: []string{"x/a"}, no: []string{"x/.a"}, isDeep: true},
		{pattern: "./docs/*.md", yes: []string{"docs/a.md"}, no: []string{"a.md", "docs/old/a.md", "x/docs/a.md"}, isDeep: true},
		{pattern: "**", yes: []string{"a", "a/b", "a/b/c"}, isDeep: true},
		{pattern: "**/*.md", yes: []string{"a.md", "x/a.md", "x/y/a.md"}, no: []string{"x/a.txt"}, isDeep: true},
		{pattern: "docs/**", yes: []string{"docs", "docs/a", "docs/a/b"}, no: []string{"doc"}, isDeep: true},
		{pattern: "docs/**/a/**/*.md", yes: []string{"docs/a/x.md", "docs/b/c/a/d/x.md"}, no: []string{"docs/x.md", "docs/b/x.md"}, isDeep: true},
		{pattern: "[a", bad: true},
		{pattern: "[!", bad: true},
		{pattern: "[!]", bad: true},
		{pattern: "../*", bad: true},
		{pattern: "/etc/*", bad: true},
	} {
		t.Run(test.pattern, func(t *testing.T) {
			p, err := patternOf(test.pattern)
			if test.bad {
				require.ErrorContains(t, err, "write one such as")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.isDeep, p.isDeep())
			for _, name := range test.yes {
				assert.True(t, p.matches(name), name)
			}
			for _, name := range test.no {
				assert.False(t, p.matches(name), name)
			}
		})
	}
	p, err := patternOf(strings.Repeat("**/", 300) + "x")
	require.NoError(t, err)
	assert.False(t, p.matches(strings.Repeat("a/", 300)+"y"), "in time that does not grow beyond measure")
}

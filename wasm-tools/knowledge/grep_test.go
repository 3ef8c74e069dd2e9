package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/documents"
)

// TestGrepAgainstASecondImplementation: reading each file whole and trying an expression on each line finds the same
// lines, however many results a page has.
func TestGrepAgainstASecondImplementation(t *testing.T) {
	some := 0
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		vocabulary := []string{"fox", "Fox", "dog", "猫", "黑猫", "cat.", "a", "the", "ſ", "\n", "\n", "\n\n", "## ", "```\n"}
		files := map[string]string{}
		for i := range 1 + random.IntN(6) {
			var b strings.Builder
			for range random.IntN(3000) {
				b.WriteString(vocabulary[random.IntN(len(vocabulary))])
				if random.IntN(3) > 0 {
					b.WriteString(" ")
				}
			}
			files[fmt.Sprintf("%c/%d%s", 'a'+rune(random.IntN(2)), i, []string{".md", ".txt"}[random.IntN(2)])] = b.String()
		}
		tools := project(t, files)
		a := arguments{Patterns: []string{"fox the", "黑猫"}[:1+random.IntN(2)], Regex: seed%2 == 0, CaseSensitive: seed%3 == 0, MaxResults: 1 + random.IntN(20)}
		if a.Regex {
			a.Patterns = []string{`^(fox|dog)\b.*the`, `猫.*\scat\.$`}
		}
		var want []string
		for name, text := range files {
			for i, l := range strings.Split(text, "\n") {
				if slices.ContainsFunc(a.Patterns, func(pattern string) bool {
					if !a.Regex {
						pattern = regexp.QuoteMeta(pattern)
					}
					if !a.CaseSensitive {
						pattern = "(?i)" + pattern
					}
					return regexp.MustCompile(pattern).MatchString(l)
				}) {
					want = append(want, fmt.Sprintf("%s:%d", name, i+1))
				}
			}
		}
		shown, lines := 0, 0
		for {
			page, _ := ask[grepData](t, tools, "grep", a)
			for _, m := range page.Matches {
				lines += m.Count
				shown += len(m.Lines)
				require.Len(t, m.Lines, min(m.Count, maxLines))
				for _, l := range m.Lines {
					require.True(t, l.Matches)
					require.Contains(t, want, fmt.Sprintf("%s:%d", m.KnowledgeID, l.Line), "%d: %q", seed, a.Patterns)
				}
			}
			if assert.Equal(t, page.Truncated, page.Next != ""); !page.Truncated {
				break
			}
			require.Len(t, page.Matches, a.MaxResults)
			a.From = page.Next
		}
		require.Equal(t, len(want), lines, "%d: %q", seed, a.Patterns)
		some += shown
	}
	assert.Greater(t, some, 1000)
}

func TestGrepLinesThatAreCut(t *testing.T) {
	tools := project(t, map[string]string{"a.txt": strings.Repeat("x", 1995) + " one two " + strings.Repeat("y ", 3000) + "three"})
	for pattern, want := range map[string]string{"one two": "a.txt#0", "one": "a.txt#0", "three": "a.txt#4", "y three": "a.txt#4"} {
		found, _ := ask[grepData](t, tools, "grep", arguments{Patterns: []string{pattern}})
		require.Len(t, found.Matches, 1, pattern)
		assert.Equal(t, want, found.Matches[0].ChunkID, pattern)
		assert.Contains(t, found.Matches[0].Lines[0].Text, pattern)
		assert.Less(t, len(found.Matches[0].Lines[0].Text), maxLine+10)
	}
}

func TestGrepTables(t *testing.T) {
	tools := project(t, map[string]string{"a.csv": "name,age\n" + strings.Repeat(strings.Repeat("x", 99)+"\n", 100) + "Ada,36\n"})
	found, _ := ask[grepData](t, tools, "grep", arguments{Patterns: []string{"name", "ada"}})
	require.Len(t, found.Matches, 2, "the header counts once")
	assert.Equal(t, []line{{1, "name,age", true}}, found.Matches[0].Lines)
	assert.Equal(t, []line{{102, "Ada,36", true}}, found.Matches[1].Lines)
}

// TestLateGrep: a search that takes too long says where to continue, and repeated calls find everything.
func TestLateGrep(t *testing.T) {
	row := strings.Repeat("x", 1999) + "\n"
	tools := project(t, map[string]string{"a.txt": strings.Repeat(row, 2*lateAfter) + "fox\n", "b.txt": strings.Repeat(row, lateAfter) + "fox"})
	tools.deadline = time.Now()
	a, calls, found := arguments{Patterns: []string{"fox"}}, 0, 0
	for {
		page, text := ask[grepData](t, tools, "grep", a)
		found += len(page.Matches)
		if calls++; !page.Truncated {
			break
		}
		assert.Contains(t, text, page.Next)
		require.NotEqual(t, a.From, page.Next)
		a.From = page.Next
	}
	assert.Equal(t, []int{2, 4}, []int{found, calls})
}

// TestAttackEndlessAnswer: a project cannot make the answer larger than a tool may print.
func TestAttackEndlessAnswer(t *testing.T) {
	files := map[string]string{}
	for i := range 200 {
		files[fmt.Sprintf("%0200d.txt", i)] = strings.Repeat("\"fox\\"+strings.Repeat("字", 320)+"\n", 2)
	}
	for i := range 1000 {
		files[fmt.Sprintf("%0200d.bin", i)] = "a\x00"
	}
	tools := project(t, files)
	result, err := tools.do("grep", arguments{Patterns: []string{"fox"}, MaxResults: 200, ContextLines: 10})
	require.NoError(t, err)
	data := decoded[grepData](t, result)
	assert.True(t, data.Truncated)
	assert.Less(t, len(result.Output), 300_000)
	assert.Greater(t, len(data.Matches), 50)
}

func TestGrepSaysWhatItCannotRead(t *testing.T) {
	tools := project(t, map[string]string{"a.txt": "fox", "b/a.txt": "fox"})
	require.NoError(t, os.Symlink("nowhere", filepath.Join(tools.project.Root, "link.txt")))
	require.NoError(t, os.Symlink("a.txt", filepath.Join(tools.project.Root, "same.txt")))
	require.NoError(t, os.Symlink("b", filepath.Join(tools.project.Root, "folder")))
	found, text := ask[grepData](t, tools, "grep", arguments{Patterns: []string{"fox"}})
	var ids []string
	for _, m := range found.Matches {
		ids = append(ids, m.ChunkID)
	}
	assert.Equal(t, []string{"a.txt#0", "b/a.txt#0", "same.txt#0"}, ids)
	assert.Equal(t, []documents.Problem{{Path: "link.txt", Reason: "it is gone, or a link that leads nowhere"}}, found.Problems)
	assert.Contains(t, text, "[link.txt: it is gone, or a link that leads nowhere]")
}

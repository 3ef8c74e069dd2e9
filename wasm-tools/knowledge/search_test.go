package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/documents"
	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/words"
)

var vocabulary = strings.Fields("the a of fox dog wolf cat lazy quick café Café 猫 黑猫 我的黑猫 river x1 x2 ox")

// randomProject writes documents of all kinds.
func randomProject(t testing.TB, random *rand.Rand) *tools {
	t.Helper()
	files := map[string]string{}
	for i := range 2 + random.IntN(8) {
		var b strings.Builder
		kind := []string{"md", "txt", "csv", "html"}[random.IntN(4)]
		for range random.IntN(1500) {
			b.WriteString(vocabulary[int(float64(len(vocabulary))*math.Pow(random.Float64(), 2))])
			b.WriteString([]string{" ", " ", " ", "\n", "\n\n", ", ", "\n## "}[random.IntN(7)])
		}
		files[fmt.Sprintf("%c/%d.%s", 'a'+rune(random.IntN(3)), i, kind)] = b.String()
	}
	files["a/binary"] = "a\x00"
	return project(t, files)
}

// directly ranks chunks by the formula of BM25, with all chunks in memory.
func directly(t testing.TB, tools *tools, a arguments) (ranked []string) {
	t.Helper()
	type counted struct {
		id     string
		counts map[string]float64
		length float64
		score  float64
		order  int
	}
	list, _, err := tools.project.List(a.KnowledgeBaseIDs)
	require.NoError(t, err)
	var chunks []*counted
	total, frequency := 0.0, map[string]float64{}
	for _, d := range list {
		var reader documents.Reader
		_, err := reader.Read(tools.project, d, func(c *documents.Chunk) error {
			one := &counted{id: documents.ID(d.ID, c.Ordinal), counts: map[string]float64{}, order: len(chunks)}
			var s words.Scanner
			one.length = float64(s.Each([]byte(c.Content()), func(word []byte, _ uint32) { one.counts[string(word)]++ }))
			for word := range one.counts {
				frequency[word]++
			}
			total += one.length
			chunks = append(chunks, one)
			return nil
		})
		if err != nil {
			require.ErrorIs(t, err, documents.ErrBinary)
		}
	}
	n := float64(len(chunks))
	for _, c := range chunks {
		for _, query := range a.Queries {
			var s words.Scanner
			score := 0.0
			for _, word := range s.Query(query) {
				f := c.counts[word]
				idf := math.Log(1 + (n-frequency[word]+0.5)/(frequency[word]+0.5))
				score += idf * f * 2.2 / (f + 1.2*(0.25+0.75*c.length/(total/n)))
			}
			c.score = math.Max(c.score, score)
		}
	}
	chunks = slices.DeleteFunc(chunks, func(c *counted) bool { return c.score == 0 })
	slices.SortFunc(chunks, func(a, b *counted) int {
		switch {
		case a.score > b.score+1e-9:
			return -1
		case b.score > a.score+1e-9:
			return 1
		}
		return a.order - b.order
	})
	for _, c := range chunks[:min(len(chunks), a.Limit)] {
		ranked = append(ranked, fmt.Sprintf("%s %.4f", c.id, rounded(c.score)))
	}
	return ranked
}

func ranked(data searchData) (all []string) {
	for _, r := range data.Results {
		all = append(all, fmt.Sprintf("%s %.4f", r.ChunkID, r.Score))
	}
	return all
}

// TestSearchAgainstASecondImplementation: search ranks as the formula of BM25 says, and in the same way with an index,
// with one that knows only some of the documents, and without.
func TestSearchAgainstASecondImplementation(t *testing.T) {
	found := 0
	for seed := range uint64(testsize.Of(12, 200)) {
		random := rand.New(rand.NewPCG(seed, 0))
		tools := randomProject(t, random)
		pick := func() string { return vocabulary[random.IntN(len(vocabulary))] }
		a := arguments{Queries: []string{pick() + " " + pick(), pick()}[:1+random.IntN(2)], Limit: 1 + random.IntN(30)}
		check := func(state indexState, covered int) {
			t.Helper()
			data, _ := ask[searchData](t, tools, "search", a)
			want := directly(t, tools, a)
			require.Equal(t, want, ranked(data), "%d: %q", seed, a.Queries)
			assert.Equal(t, state, data.Index.State)
			assert.Equal(t, covered, data.Index.Documents)
			assert.True(t, data.Complete)
			assert.Equal(t, 1, data.Binary)
			found += len(want)
		}
		check(indexAbsent, 0)
		indexed, text := ask[indexData](t, tools, "index", arguments{})
		require.True(t, indexed.Complete, text)
		list, _, err := tools.project.List(nil)
		require.NoError(t, err)
		check(indexUsed, len(list))

		// One document is new, one has changed, one is gone.
		put(t, tools.project.Root, "b/new.md", "fox 黑猫 river\n", modified)
		put(t, tools.project.Root, list[0].ID, "wolf and fox\n", modified.Add(time.Second))
		covered := len(list) - 1
		if last := list[len(list)-1]; last.ID != list[0].ID && last.ID != "a/binary" {
			require.NoError(t, os.Remove(filepath.Join(tools.project.Root, last.ID)))
			covered--
		}
		if list[0].ID == "a/binary" {
			put(t, tools.project.Root, "a/binary2", "\x00", modified)
		}
		check(indexUsed, covered)
		again, _ := ask[indexData](t, tools, "index", arguments{})
		assert.Equal(t, covered, again.Unchanged)
		list, _, err = tools.project.List(nil)
		require.NoError(t, err)
		check(indexUsed, len(list))
		a.KnowledgeBaseIDs = []string{"b"}
		data, _ := ask[searchData](t, tools, "search", a)
		require.Equal(t, directly(t, tools, a), ranked(data))
	}
	assert.Greater(t, found, 200)
}

func TestSearchNeedsWords(t *testing.T) {
	tools := project(t, map[string]string{"a.txt": "fox"})
	_, err := tools.do("search", arguments{Queries: []string{"?", " "}})
	require.ErrorContains(t, err, "the queries have no words")
	_, err = tools.do("search", arguments{Queries: []string{manyWords(1001)}})
	require.ErrorContains(t, err, "too many words")
}

func manyWords(count int) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, " w%d", i)
	}
	return b.String()
}

// TestLateSearch: a search that takes too long says how many documents it has read.
func TestLateSearch(t *testing.T) {
	row := strings.Repeat("fox ", 499) + "\n"
	tools := project(t, map[string]string{"a.txt": "fox", "b.txt": strings.Repeat(row, lateAfter), "c.txt": "fox"})
	tools.deadline = time.Now()
	data, text := ask[searchData](t, tools, "search", arguments{Queries: []string{"fox"}, Limit: 1})
	assert.False(t, data.Complete)
	assert.Equal(t, 1, data.Documents)
	assert.Len(t, data.Results, 1)
	assert.Contains(t, text, "[there was time for 1 of 3 documents: name fewer knowledge bases, or call knowledge_index first]")
}

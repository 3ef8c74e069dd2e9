package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/index"
)

// indexFiles returns the files of the index, by name.
func indexFiles(t testing.TB, tools *tools) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	names, err := filepath.Glob(filepath.Join(tools.project.Root, indexFolder, "*"))
	require.NoError(t, err)
	for _, name := range names {
		files[name], err = os.ReadFile(name)
		require.NoError(t, err)
	}
	return files
}

// restore puts back the files of an index.
func restore(t testing.TB, tools *tools, files map[string][]byte) {
	t.Helper()
	for name := range indexFiles(t, tools) {
		require.NoError(t, os.Remove(name))
	}
	for name, content := range files {
		require.NoError(t, os.WriteFile(name, content, 0o600))
	}
}

// TestAttackDamagedIndex: with any damage to a file of the index, a search has the same results as without an index,
// and knowledge_index repairs it. The undamaged index is used.
func TestAttackDamagedIndex(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	tools := randomProject(t, random)
	a := arguments{Queries: []string{"fox 黑猫", "river"}, Limit: 20}
	want := directly(t, tools, a)
	require.NotEmpty(t, want)
	ask[indexData](t, tools, "index", arguments{})
	files := indexFiles(t, tools)
	require.Len(t, files, 2)
	states := map[indexState]int{}
	for name, good := range files {
		for i := range testsize.Of(90, 1000) {
			bad := bytes.Clone(good)
			switch at := random.IntN(len(bad)); {
			case i == 0:
				bad = nil
			case i == 1:
				bad = append(bad, 0)
			case i < 20:
				bad = bad[:at]
			case i < 40:
				bad = append(bad[:at], bad[min(len(bad), at+1+random.IntN(8)):]...)
			default:
				bad[at] ^= 1 << random.IntN(8)
			}
			require.NoError(t, os.WriteFile(name, bad, 0o600))
			data, text := ask[searchData](t, tools, "search", a)
			require.Equal(t, want, ranked(data), "%s %d", name, i)
			require.Equal(t, data.Index.State == indexDamaged, strings.Contains(text, "the index is damaged and was not used"))
			states[data.Index.State]++ // it is used if the damage concerns words that no query has
			if filepath.Base(name) == index.Name {
				require.Equal(t, indexDamaged, data.Index.State)
			}
			if i%30 == 0 {
				repaired, text := ask[indexData](t, tools, "index", arguments{})
				require.True(t, repaired.Rebuilt && repaired.Complete, text)
				data, _ = ask[searchData](t, tools, "search", a)
				require.Equal(t, want, ranked(data))
				require.Equal(t, indexUsed, data.Index.State)
				restore(t, tools, files)
			}
		}
		require.NoError(t, os.Remove(name))
		data, _ := ask[searchData](t, tools, "search", a)
		require.Equal(t, want, ranked(data))
		require.NotEqual(t, indexUsed, data.Index.State)
		restore(t, tools, files)
	}
	assert.Greater(t, states[indexDamaged], testsize.Of(100, 1300))
	assert.Greater(t, states[indexUsed], 0)
	data, _ := ask[searchData](t, tools, "search", a)
	assert.Equal(t, indexUsed, data.Index.State, "as it was")
}

// TestAttackFalseIndex: an index with good checksums but false entries about the chunks in a result is not believed.
func TestAttackFalseIndex(t *testing.T) {
	for name, forge := range map[string]func(t *testing.T, tools *tools){
		"a document that changes without another size or time": func(t *testing.T, tools *tools) {
			put(t, tools.project.Root, "a.txt", "dog and fox", modified)
			put(t, tools.project.Root, "b.txt", "fox and cow", modified)
		},
		"runs that overlap": func(t *testing.T, tools *tools) {
			rewrite(t, tools, func(c *index.Catalogue) {
				for i := range c.Entries {
					c.Entries[i].Runs[0].First = 0
				}
			})
		},
		"chunks that there are not": func(t *testing.T, tools *tools) {
			rewrite(t, tools, func(c *index.Catalogue) { c.Entries[0].Runs[0].Count = 1000 })
		},
		"documents in the place of others": func(t *testing.T, tools *tools) {
			rewrite(t, tools, func(c *index.Catalogue) {
				c.Entries[0].Runs, c.Entries[1].Runs = c.Entries[1].Runs, c.Entries[0].Runs
			})
		},
		"a segment of another project": func(t *testing.T, tools *tools) {
			other := project(t, map[string]string{"a.txt": "fox", "b.txt": "fox fox", "c.txt": "fox fox fox"})
			ask[indexData](t, other, "index", arguments{})
			files := indexFiles(t, other)
			rewrite(t, tools, func(c *index.Catalogue) {
				for name, content := range files {
					if filepath.Base(name) != index.Name {
						require.NoError(t, os.WriteFile(filepath.Join(tools.project.Root, indexFolder, c.Segments[0]), content, 0o600))
					}
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			tools := project(t, map[string]string{"a.txt": "fox and dog", "b.txt": "cow and cat", "c.txt": "the fox"})
			ask[indexData](t, tools, "index", arguments{})
			a := arguments{Queries: []string{"fox dog", "cat"}, Limit: 10}
			data, _ := ask[searchData](t, tools, "search", a)
			require.Equal(t, indexUsed, data.Index.State, "before")
			forge(t, tools)
			data, _ = ask[searchData](t, tools, "search", a)
			assert.Equal(t, indexDamaged, data.Index.State)
			assert.Equal(t, directly(t, tools, a), ranked(data))
			ask[indexData](t, tools, "index", arguments{Rebuild: true})
			data, _ = ask[searchData](t, tools, "search", a)
			assert.Equal(t, indexUsed, data.Index.State)
			assert.Equal(t, directly(t, tools, a), ranked(data))
		})
	}
}

// TestAttackLargeIndex: a catalogue cannot ask for more memory than its documents need.
func TestAttackLargeIndex(t *testing.T) {
	tools := project(t, map[string]string{"a.txt": "fox", "b.txt": "cow"})
	ask[indexData](t, tools, "index", arguments{})
	runs := func(count int) error {
		rewrite(t, tools, func(c *index.Catalogue) { c.Entries[0].Runs = make([]index.Run, count) })
		_, err := index.Load(tools.indexFolder())
		return err
	}
	require.NoError(t, runs(2), "a document that goes on in the only segment")
	require.ErrorIs(t, runs(3), index.ErrDamaged)
	data, _ := ask[indexData](t, tools, "index", arguments{})
	assert.True(t, data.Rebuilt && data.Complete)
}

// TestAttackFolderOfIndex: only files of an index are removed, even if a project links its index's folder elsewhere.
func TestAttackFolderOfIndex(t *testing.T) {
	tools := project(t, map[string]string{"a.txt": "fox", "src/main.c": "int main", "src/0123456789abcdef0123456789abcdef": "a digest"})
	require.NoError(t, os.Symlink("src", tools.indexFolder()))
	for _, rebuild := range []bool{false, true} {
		_, err := tools.index(arguments{Rebuild: rebuild})
		require.EqualError(t, err, "the index cannot be written: .caisson-knowledge of the project is a link or a file, and not the folder of an index; remove it")
	}
	files, err := filepath.Glob(filepath.Join(tools.project.Root, "src", "*"))
	require.NoError(t, err)
	assert.Len(t, files, 2)

	require.NoError(t, os.Remove(tools.indexFolder()))
	put(t, tools.project.Root, indexFolder+"/README", "not of the index", modified)
	put(t, tools.project.Root, indexFolder+"/"+strings.Repeat("0", 32), "an old segment", modified)
	put(t, tools.project.Root, indexFolder+"/catalogue.1", "not finished", modified)
	ask[indexData](t, tools, "index", arguments{})
	assert.Len(t, indexFiles(t, tools), 3, "a segment, a catalogue and the README")
	assert.FileExists(t, filepath.Join(tools.indexFolder(), "README"))
}

func rewrite(t *testing.T, tools *tools, change func(*index.Catalogue)) {
	t.Helper()
	c, err := index.Load(tools.indexFolder())
	require.NoError(t, err)
	change(c)
	text, err := c.Encode()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(tools.indexFolder(), index.Name), text, 0o600))
}

// TestIndexGoesOn: each call with too little time adds to the index, until it is complete; a document that is too long
// for any call is left to searches.
func TestIndexGoesOn(t *testing.T) {
	files := map[string]string{}
	for i := range 6 {
		files[fmt.Sprintf("%d.txt", i)] = strings.Repeat(fmt.Sprintf("fox %d ", i)+strings.Repeat("word ", 390)+"\n", lateAfter-10)
	}
	files["long.txt"] = strings.Repeat("fox "+strings.Repeat("word ", 390)+"\n", 10*lateAfter)
	tools := project(t, files)
	a := arguments{Queries: []string{"fox 3"}, Limit: 20}
	want := directly(t, tools, a)
	looks := 0
	calls := 1
	for ; ; calls++ {
		require.Less(t, calls, 20)
		tools.now = func() time.Time { looks++; return modified.AddDate(1, 0, 0).Add(time.Duration(looks) * time.Second) }
		tools.deadline = tools.now().Add(budget)
		data, text := ask[indexData](t, tools, "index", arguments{})
		tools.now, tools.deadline = time.Now, time.Now().Add(time.Hour)
		found, _ := ask[searchData](t, tools, "search", a)
		require.Equal(t, want, ranked(found))
		require.Equal(t, data.Documents, found.Index.Documents)
		require.Equal(t, 7, data.Documents+data.TooLong+data.Remaining)
		if data.Complete {
			assert.Equal(t, []int{6, 1}, []int{data.Documents, data.TooLong})
			assert.Contains(t, text, "[1 document is too long for the index: knowledge_search reads what is left out]")
			break
		}
		assert.Contains(t, text, "call knowledge_index again to go on]")
	}
	assert.Greater(t, calls, 2)
}

// TestIndexOfManyChanges: however often documents change, the index has few segments, and is right.
func TestIndexOfManyChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	tools := project(t, nil)
	a := arguments{Queries: []string{"fox wolf", "猫"}, Limit: 20}
	for i := range testsize.Of(25, 200) {
		name := fmt.Sprintf("%d.md", random.IntN(30))
		put(t, tools.project.Root, name, strings.Repeat(vocabulary[random.IntN(len(vocabulary))]+" ", 1+random.IntN(50)), modified.Add(time.Duration(i)*time.Second))
		data, _ := ask[indexData](t, tools, "index", arguments{})
		require.True(t, data.Complete)
		require.LessOrEqual(t, len(indexFiles(t, tools)), 1+maxSmall+1)
		found, _ := ask[searchData](t, tools, "search", a)
		require.Equal(t, indexUsed, found.Index.State)
		require.Equal(t, found.Documents, found.Index.Documents)
		require.Equal(t, directly(t, tools, a), ranked(found))
	}
}

// TestRecentChanges: a document that changed a moment ago may change again within the resolution of file times, so a
// search reads it and does not use the index.
func TestRecentChanges(t *testing.T) {
	tools := project(t, map[string]string{"old.txt": "fox"})
	put(t, tools.project.Root, "new.txt", "dog", time.Now())
	ask[indexData](t, tools, "index", arguments{})
	put(t, tools.project.Root, "new.txt", "fox", time.Now())
	found, _ := ask[searchData](t, tools, "search", arguments{Queries: []string{"fox"}})
	assert.Len(t, found.Results, 2)
	assert.Equal(t, 1, found.Index.Documents)
}

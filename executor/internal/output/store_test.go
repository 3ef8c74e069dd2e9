package output_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor/internal/output"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

func newStore(t testing.TB, bytes int64) *output.Store {
	t.Helper()
	store := noerr.Get(output.NewShared(bytes).NewStore(bytes))(t)
	return store
}

// readAll reads a whole page by page and checks that the pages are adjacent.
func readAll(t testing.TB, store *output.Store, reference string, most int64) string {
	t.Helper()
	var whole strings.Builder
	for from := int64(0); from >= 0; {
		page := noerr.Get(store.Page(reference, from, most))(t)
		require.Equal(t, reference, page.Reference)
		require.Equal(t, from, page.From)
		require.True(t, utf8.ValidString(page.Text))
		if page.Next >= 0 {
			require.Greater(t, page.Next, page.From, "each page must get further")
			require.Equal(t, from+int64(len(page.Text)), page.Next)
			require.Less(t, page.Next, page.Total)
		} else {
			require.Equal(t, page.Total, from+int64(len(page.Text)))
		}
		whole.WriteString(page.Text)
		from = page.Next
	}
	return whole.String()
}

func TestStoreLetsTheOldestGo(t *testing.T) {
	cost := int64(output.EntryBytes + 1 + 10)
	store := newStore(t, 3*cost)
	text := strings.Repeat("x", 10)
	for _, reference := range []string{"a", "b", "c"} {
		require.True(t, store.Keep(reference, text))
	}
	_, err := store.Page("d", 0, 0)
	require.EqualError(t, err, `reference "d": unknown reference: nothing is kept under it in this session`)

	require.True(t, store.Keep("a", "again"), "shorter, so that nothing has to go; and the newest now")
	require.True(t, store.Keep("d", text))
	_, err = store.Page("b", 0, 0)
	require.ErrorIs(t, err, output.ErrUnknown)
	assert.ErrorContains(t, err, "or it was evicted by later results")
	assert.Equal(t, "again", readAll(t, store, "a", 0))
	assert.Equal(t, text, readAll(t, store, "c", 0))

	assert.False(t, store.Keep("e", strings.Repeat("x", int(3*cost))), "larger than the bound")
	assert.Equal(t, text, readAll(t, store, "d", 0), "a refused text evicts nothing")
	assert.False(t, store.Keep("", "x"))
}

func TestPage(t *testing.T) {
	store := newStore(t, 16<<20)
	require.True(t, store.Keep("r", "aé\U0001F600z")) // a 0, é 1-2, emoji 3-6, z 7
	require.True(t, store.Keep("long", strings.Repeat("a", 40<<10)))
	require.True(t, store.Keep("empty", ""))
	require.True(t, store.Keep("bad", "a\xff\xfeb"))
	for _, test := range []struct {
		name       string
		reference  string
		from, most int64
		want       tool.Page
	}{
		{"all", "r", 0, 8, tool.Page{Text: "aé\U0001F600z", Next: -1, Total: 8}},
		{"more than all", "r", 0, 1 << 62, tool.Page{Text: "aé\U0001F600z", Next: -1, Total: 8}},
		{"ends inside", "r", 0, 2, tool.Page{Text: "a", Next: 1, Total: 8}},
		{"begins inside", "r", 2, 4, tool.Page{Text: "\U0001F600", From: 3, Next: 7, Total: 8}},
		{"less than a character", "r", 3, 1, tool.Page{Text: "\U0001F600", From: 3, Next: 7, Total: 8}},
		{"inside the last", "r", 6, 1, tool.Page{Text: "z", From: 7, Next: -1, Total: 8}},
		{"at the end", "r", 8, 1, tool.Page{From: 8, Next: -1, Total: 8}},
		{"default length", "long", 1, 0, tool.Page{Text: strings.Repeat("a", 32<<10), From: 1, Next: 32<<10 + 1, Total: 40 << 10}},
		{"empty", "empty", 0, 0, tool.Page{Next: -1}},
		{"was not valid", "bad", 0, 0, tool.Page{Text: "a\uFFFDb", Next: -1, Total: 5}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.want.Reference = test.reference
			got := noerr.Get(store.Page(test.reference, test.from, test.most))(t)
			assert.Equal(t, test.want, got)
		})
	}
	for _, test := range []struct {
		name, reference string
		from, most      int64
		want            error
		message         string
	}{
		{"negative from", "r", -1, 0, output.ErrRange, `reference "r": outside of the text: it has 8 bytes and no page from -1 on`},
		{"beyond", "r", 9, 0, output.ErrRange, `reference "r": outside of the text: it has 8 bytes and no page from 9 on`},
		{"negative most", "r", 0, -1, output.ErrRange, `reference "r": outside of the text: a page cannot have -1 bytes`},
		{"unknown", "x\x1b", 0, 0, output.ErrUnknown, "reference \"x\uFFFD\": unknown reference: nothing is kept under it in this session"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := store.Page(test.reference, test.from, test.most)
			require.ErrorIs(t, err, test.want)
			assert.EqualError(t, err, test.message)
		})
	}
}

func FuzzPagesAreTheWhole(f *testing.F) {
	f.Add("aé\U0001F600z", int64(1))
	f.Add("a\xff\xf0\x9fz", int64(3))
	f.Fuzz(func(t *testing.T, text string, most int64) {
		store := newStore(t, 16<<20)
		require.True(t, store.Keep("r", text))
		most = max(most, -most, 1)
		if most < 0 {
			most = 1 // the negative number that has no positive one
		}
		whole := strings.ToValidUTF8(text, "\uFFFD")
		require.Equal(t, whole, readAll(t, store, "r", most))
		for from := range int64(min(len(whole), 100)) {
			page := noerr.Get(store.Page("r", from, most))(t)
			require.True(t, utf8.ValidString(page.Text))
			require.Equal(t, whole[page.From:page.From+int64(len(page.Text))], page.Text)
			require.Less(t, page.From-from, int64(utf8.UTFMax))
		}
	})
}

// TestStoreUnderLoad: the store always holds the newest texts that have room, whatever the order of events.
func TestStoreUnderLoad(t *testing.T) {
	const each = output.EntryBytes + 6 + 1000
	store := newStore(t, 10*each)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 500 {
				reference := fmt.Sprintf("%d/%04d", worker, i)
				text := strings.Repeat(string(rune('a'+worker)), 1000)
				assert.True(t, store.Keep(reference, text))
				page, err := store.Page(reference, 0, 0)
				if err == nil {
					assert.Equal(t, text, page.Text)
				} else {
					assert.ErrorIs(t, err, output.ErrUnknown)
				}
			}
		})
	}
	all.Wait()
	left := 0
	for worker := range 8 {
		for i := range 500 {
			if _, err := store.Page(fmt.Sprintf("%d/%04d", worker, i), 0, 0); err == nil {
				left++
			}
		}
	}
	assert.Equal(t, 10, left)
}

// TestStoreHoldsNoMoreThanItsTexts: a guest can write a text of which nearly all is trimmed. The remaining text must not
// hold the rest in memory, which the store's bound does not count. Nor must a page hold its whole text.
func TestStoreHoldsNoMoreThanItsTexts(t *testing.T) {
	const n, large = 64, 1 << 20
	heap := func() int64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	store := newStore(t, 2*large)
	before := heap()
	for i := range n {
		require.True(t, store.Keep(fmt.Sprint(i), strings.Repeat("x", large)[:100]))
	}
	assert.Less(t, heap()-before, int64(n*large/4))

	var pages []tool.Page
	for range n {
		require.True(t, store.Keep("r", strings.Repeat("x", large)))
		page := noerr.Get(store.Page("r", 0, 100))(t)
		pages = append(pages, page)
	}
	assert.Less(t, heap()-before, int64(n*large/4))
	runtime.KeepAlive(pages)
	runtime.KeepAlive(store)
}

func TestKeeperKeepsTheFirstTogether(t *testing.T) {
	store := newStore(t, 1000)
	require.True(t, store.Keep("old", strings.Repeat("o", 500)))
	keep := store.Keeper(func(part string) string { return "r/" + part })
	assert.Equal(t, "r/error", keep("error", strings.Repeat("e", 600)))
	assert.Empty(t, keep("output", strings.Repeat("x", 600)), "it would drive out error, whose mark is about to name it")
	assert.Equal(t, "r/data", keep("data", "1"))
	assert.Len(t, readAll(t, store, "r/error", 0), 600)
	assert.Equal(t, "1", readAll(t, store, "r/data", 0))
	assert.ErrorIs(t, noerr.Error(store.Page("old", 0, 0)), output.ErrUnknown)
}

func TestKeeperWithoutReference(t *testing.T) {
	store := newStore(t, 16<<20)
	assert.Empty(t, store.Keeper(func(string) string { return "" })("output", "x"))
}

package output_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor/internal/output"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// pieces are the parts of generated texts.
var pieces = []string{
	"a", "word ", "\n", "\r\n", "é", "e\u0301", "\U0001F600", "\U0001F468\u200D\U0001F469\u200D\U0001F467", "\U0001F44D\U0001F3FD",
	"\u200D", "\uFFFD", "\x00", "\xff", "\xc3", "\xed\xa0\x80", "\xf0\x9f", "\"", "[output: 3 of 9, r/output]",
}

type generator struct {
	*rand.Rand
	seed string // of fuzzing
}

func (g generator) text(most int) string {
	var b strings.Builder
	for n := g.IntN(most + 1); b.Len() < n; {
		piece := pieces[g.IntN(len(pieces))]
		if g.IntN(8) == 0 {
			piece = g.seed
		}
		b.WriteString(strings.Repeat(piece, 1+g.IntN(4)))
		if piece == "" {
			break
		}
	}
	return b.String()
}

// maybe is a text, or none.
func (g generator) maybe(most int) string {
	if g.IntN(2) == 0 {
		return ""
	}
	return g.text(most)
}

func (g generator) data(most int) json.RawMessage {
	switch g.IntN(4) {
	case 0:
		return nil
	case 1:
		return json.RawMessage(fmt.Sprint(g.IntN(1000)))
	}
	// As a guest writes it: strings are not valid UTF-8.
	return json.RawMessage(`["` + strings.NewReplacer("\x00", "", "\n", "", "\r", "", `"`, "", `\`, "").Replace(g.plain(most)) + `"]`)
}

func (g generator) plain(most int) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return -1
		}
		return r
	}, g.text(most))
}

func (g generator) result(most int) tool.Result {
	r := tool.Result{Output: g.maybe(most), Error: g.maybe(most), Data: g.data(most)}
	if g.IntN(4) == 0 && r.Data != nil {
		r.Output = " " + strings.ReplaceAll(string(r.Data), "[", "[\n ")
	}
	if g.IntN(2) == 0 {
		return r
	}
	for range g.IntN(12) {
		p := tool.Content{Type: []string{"text", "image", "link", g.maybe(100)}[g.IntN(4)], Text: g.maybe(most)}
		if g.IntN(3) == 0 {
			p.Data = []byte(g.text(most))
		}
		if g.IntN(3) == 0 {
			p.URL, p.Name, p.MIMEType = g.maybe(most/2), g.maybe(200), g.maybe(100)
		}
		r.Content = append(r.Content, p)
	}
	return r
}

func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// copyOf returns a deep copy of the result.
func copyOf(r tool.Result) tool.Result {
	r.Data = append(json.RawMessage(nil), r.Data...)
	r.Content = append([]tool.Content(nil), r.Content...)
	for i := range r.Content {
		r.Content[i].Data = append([]byte(nil), r.Content[i].Data...)
	}
	return r
}

func allText(r tool.Result) []string {
	texts := []string{r.Output, r.Error, string(r.Data)}
	for _, p := range r.Content {
		texts = append(texts, p.Type, p.Text, p.URL, p.Name, p.MIMEType)
	}
	return texts
}

// checkCut cuts a result and checks everything that holds for all of them.
func checkCut(t testing.TB, original tool.Result, most int, bound, pageBytes int64) (tool.Result, []tool.Cut) {
	t.Helper()
	store := newStore(t, bound)
	before := copyOf(original)
	result, cuts := output.Cut(original, most, keeper(store), mark)
	require.Equal(t, before, copyOf(original), "the given result must not be written to")
	require.LessOrEqual(t, sizeForModel(result), max(most, 0))
	require.LessOrEqual(t, len(result.Data), max(most, 0))
	for _, text := range allText(result) {
		require.True(t, utf8.ValidString(text), "%q", text)
	}
	if len(result.Data) > 0 {
		require.Equal(t, valid(string(original.Data)), string(result.Data), "data is whole or gone")
	}
	cutOf := make(map[string]tool.Cut)
	for _, c := range cuts {
		require.NotContains(t, cutOf, c.Part, "one cut for each part")
		cutOf[c.Part] = c
		checkWhole(t, store, original, result, c, pageBytes)
	}
	checkUncut(t, original, result, cutOf)

	again, none := output.Cut(result, max(most, 0)+int(pageBytes), nil, mark)
	if most < 0 || len(cuts) > 0 {
		again, none = output.Cut(result, max(sizeForModel(result)+partsCost(result), len(result.Data)), nil, mark)
	}
	require.Equal(t, result, again, "a result that fits is unchanged")
	require.Empty(t, none)
	return result, cuts
}

func partsCost(r tool.Result) int {
	cost := 0
	for _, p := range r.Content {
		cost += perPart + len(p.Type)
	}
	return cost
}

// echoes reports whether output is data as text, so that output's whole is that of both.
func echoes(r tool.Result) bool {
	var compact bytes.Buffer
	return len(r.Data) > 0 && json.Compact(&compact, []byte(valid(r.Output))) == nil && compact.String() == valid(string(r.Data))
}

// checkWhole checks that the whole can be read by a cut's reference and begins with the part that the result
// kept.
func checkWhole(t testing.TB, store *output.Store, original, result tool.Result, c tool.Cut, pageBytes int64) {
	t.Helper()
	var whole, left string
	var i int
	switch {
	case c.Part == "output":
		whole, left = valid(original.Output), result.Output
	case c.Part == "error":
		whole, left = valid(original.Error), result.Error
	case c.Part == "data" && echoes(original) && c.Reference != "r/data" && c.Bytes == int64(len(valid(original.Output))):
		whole = valid(original.Output)
	case c.Part == "data":
		whole, left = valid(string(original.Data)), result.Output
	case strings.HasSuffix(c.Part, ":]"):
		noerr.Get(fmt.Sscanf(c.Part, "content[%d:]", &i))(t)
		if c.Reference != "" {
			parts := noerr.Decode[[]tool.Content](t, []byte(readAll(t, store, c.Reference, pageBytes)))
			require.Len(t, parts, len(original.Content)-i)
			for j, p := range parts {
				was := original.Content[i+j]
				require.Equal(t, string(was.Data), string(p.Data))
				require.Equal(t, valid(was.Text), p.Text)
				require.Equal(t, valid(was.URL), p.URL)
			}
		}
		require.Zero(t, c.Kept)
		return
	default:
		noerr.Get(fmt.Sscanf(c.Part, "content[%d]", &i))(t)
		was := original.Content[i]
		whole, left = valid(was.Text), result.Content[i].Text
		if len(was.Data) > 0 {
			require.Empty(t, c.Reference)
			require.EqualValues(t, len(was.Data), c.Bytes)
			require.Zero(t, c.Kept)
			return
		}
		if c.Kept == 0 && c.Bytes != int64(len(whole)) {
			return // the part as JSON, which has separate tests
		}
	}
	require.EqualValues(t, len(whole), c.Bytes)
	require.Less(t, c.Kept, c.Bytes)
	require.True(t, strings.HasPrefix(left, whole[:c.Kept]))
	if c.Reference != "" {
		require.Equal(t, whole, readAll(t, store, c.Reference, pageBytes), "a reference that is named must work")
	}
}

// checkUncut checks that parts of which no cut speaks are there in whole.
func checkUncut(t testing.TB, original, result tool.Result, cutOf map[string]tool.Cut) {
	t.Helper()
	require.Equal(t, original.Success, result.Success)
	require.Equal(t, original.Kind, result.Kind)
	if _, cut := cutOf["error"]; !cut {
		require.Equal(t, valid(original.Error), result.Error)
	}
	_, dataCut := cutOf["data"]
	if !dataCut {
		require.Equal(t, valid(string(original.Data)), string(result.Data))
	}
	if _, cut := cutOf["output"]; !cut {
		if !dataCut || original.Output != "" {
			require.Equal(t, valid(original.Output), result.Output)
		}
	}
	for i, was := range original.Content {
		if _, rest := cutOf[fmt.Sprintf("content[%d:]", i)]; rest {
			return
		}
		if _, cut := cutOf[fmt.Sprintf("content[%d]", i)]; cut {
			continue
		}
		got := result.Content[i]
		require.Equal(t, valid(was.Text), got.Text)
		require.Equal(t, string(was.Data), string(got.Data))
		require.Equal(t, valid(was.Type+was.URL+"\n"+was.Name), got.Type+got.URL+"\n"+got.Name)
	}
}

// checkTwice cuts a result that was cut already. The properties of any cut apply to it, and the remaining output is
// no longer than after the first cut. It may be shorter than after a single cut to the same bound, since the first
// mark took room, or counted as text.
func checkTwice(t testing.TB, once tool.Result, most int) {
	t.Helper()
	twice, cuts := checkCut(t, once, most, 0, 100)
	for _, c := range cuts {
		if c.Part == "output" {
			require.True(t, strings.HasPrefix(once.Output, twice.Output[:c.Kept]))
		}
	}
}

func checkSeed(t testing.TB, seed uint64, text string, most int, bound, pageBytes int64) {
	t.Helper()
	g := generator{rand.New(rand.NewPCG(seed, 1)), text}
	once, _ := checkCut(t, g.result(1<<g.IntN(13)), most, bound, pageBytes)
	if most > 0 {
		checkTwice(t, once, g.IntN(most))
	}
}

func TestCutProperties(t *testing.T) {
	for seed := range uint64(3000) {
		g := rand.New(rand.NewPCG(seed, 2))
		checkSeed(t, seed, "seed", g.IntN(1<<g.IntN(14)+1)-1, int64(g.IntN(20_000)), 1+int64(g.IntN(1000)))
	}
}

func FuzzCut(f *testing.F) {
	f.Add(uint64(1), "text", 100, uint16(0), uint16(7))
	f.Add(uint64(2), "\xf0\x9f\x98", 1000, uint16(500), uint16(1))
	f.Add(uint64(3), "e\u0301\u0301", -5, uint16(5000), uint16(100))
	f.Fuzz(func(t *testing.T, seed uint64, text string, most int, bound, pageBytes uint16) {
		checkSeed(t, seed, text, most%(1<<20), int64(bound), 1+int64(pageBytes))
	})
}

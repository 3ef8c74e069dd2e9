package output_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor/internal/output"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// mark is short, so that tests can be read.
func mark(c tool.Cut) string {
	return fmt.Sprintf("[%s: %d of %d, %s]", c.Part, c.Kept, c.Bytes, c.Reference)
}

func keeper(store *output.Store) output.Keep {
	return store.Keeper(func(part string) string { return "r/" + part })
}

func raw(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

func text(n int, of string) string { return strings.Repeat(of, n) }

func TestCut(t *testing.T) {
	number := text(200, "7")
	for _, test := range []struct {
		name    string
		result  tool.Result
		most    int
		output  string
		data    string
		failure string
		cuts    []tool.Cut
	}{
		{
			name: "output", result: tool.Result{Output: text(200, "x")}, most: 100,
			output: text(69, "x") + "\n[output: 69 of 200, r/output]",
			cuts:   []tool.Cut{{Part: "output", Reference: "r/output", Bytes: 200, Kept: 69}},
		},
		{
			name: "error alone has all room", result: tool.Result{Error: text(200, "e")}, most: 100,
			failure: text(71, "e") + "\n[error: 71 of 200, r/error]",
			cuts:    []tool.Cut{{Part: "error", Reference: "r/error", Bytes: 200, Kept: 71}},
		},
		{
			name: "error has half where output needs the other", most: 100,
			result:  tool.Result{Error: text(200, "e"), Output: text(200, "x")},
			failure: text(22, "e") + "\n[error: 22 of 200, r/error]", output: text(20, "x") + "\n[output: 20 of 200, r/output]",
			cuts: []tool.Cut{{Part: "error", Reference: "r/error", Bytes: 200, Kept: 22}, {Part: "output", Reference: "r/output", Bytes: 200, Kept: 20}},
		},
		{
			name: "error has what output does not need", most: 100,
			result:  tool.Result{Error: text(200, "e"), Output: "short"},
			failure: text(67, "e") + "\n[error: 67 of 200, r/error]", output: "short",
			cuts: []tool.Cut{{Part: "error", Reference: "r/error", Bytes: 200, Kept: 67}},
		},
		{
			name: "long output and small data", most: 100,
			result: tool.Result{Output: text(200, "x"), Data: raw(`{"a":1}`)},
			output: text(69, "x") + "\n[output: 69 of 200, r/output]", data: `{"a":1}`,
			cuts: []tool.Cut{{Part: "output", Reference: "r/output", Bytes: 200, Kept: 69}},
		},
		{
			name: "short output and long data", most: 100,
			result: tool.Result{Output: "hello", Data: raw(number)},
			output: "hello",
			cuts:   []tool.Cut{{Part: "data", Reference: "r/data", Bytes: 200}},
		},
		{
			name: "no output and long data", most: 100, result: tool.Result{Data: raw(number)},
			output: text(73, "7") + "\n[data: 73 of 200, r/data]",
			cuts:   []tool.Cut{{Part: "data", Reference: "r/data", Bytes: 200, Kept: 73}},
		},
		{
			name: "no output, data and an error", most: 100, result: tool.Result{Error: text(200, "e"), Data: raw(`{"a":1}`)},
			failure: text(65, "e") + "\n[error: 65 of 200, r/error]", data: `{"a":1}`,
			cuts: []tool.Cut{{Part: "error", Reference: "r/error", Bytes: 200, Kept: 65}},
		},
		{
			name: "both are long", most: 200,
			result: tool.Result{Output: text(300, "x"), Data: raw(`"` + number + `"`)},
			output: text(169, "x") + "\n[output: 169 of 300, r/output]",
			cuts:   []tool.Cut{{Part: "output", Reference: "r/output", Bytes: 300, Kept: 169}, {Part: "data", Reference: "r/data", Bytes: 202}},
		},
		{
			name: "both fit, but not together", most: 200,
			result: tool.Result{Output: text(199, "x"), Data: raw(number)}, output: text(199, "x"), data: number,
		},
		{
			name: "output is data as text, and both fit", most: 100,
			result: tool.Result{Output: "[ 1,\n  " + text(80, "2") + " ]", Data: raw("[1," + text(80, "2") + "]")},
			output: "[ 1,\n  " + text(80, "2") + " ]", data: "[1," + text(80, "2") + "]",
		},
		{
			name: "output is data as text, and neither fits", most: 100,
			result: tool.Result{Output: "\n" + number, Data: raw(number)},
			output: "\n" + text(68, "7") + "\n[output: 69 of 201, r/output]",
			cuts:   []tool.Cut{{Part: "output", Reference: "r/output", Bytes: 201, Kept: 69}, {Part: "data", Reference: "r/output", Bytes: 201}},
		},
		{
			name: "room for a part of the mark", most: 5, result: tool.Result{Output: text(200, "x")},
			output: "[outp", cuts: []tool.Cut{{Part: "output", Reference: "r/output", Bytes: 200}},
		},
		{
			name: "no room", most: 0, result: tool.Result{Output: "x", Error: "e", Data: raw("1")},
			cuts: []tool.Cut{{Part: "error", Reference: "r/error", Bytes: 1}, {Part: "output", Reference: "r/output", Bytes: 1}, {Part: "data", Reference: "r/data", Bytes: 1}},
		},
		{
			name: "negative room", most: -1, result: tool.Result{Output: "x"},
			cuts: []tool.Cut{{Part: "output", Reference: "r/output", Bytes: 1}},
		},
		{
			name: "ends with a line", most: 96, result: tool.Result{Output: text(30, "line\r\n")},
			output: text(11, "line\r\n") + "[output: 66 of 180, r/output]",
			cuts:   []tool.Cut{{Part: "output", Reference: "r/output", Bytes: 180, Kept: 66}},
		},
		{
			name: "fits once it is valid", most: 7, result: tool.Result{Output: "a\xff\xffb", Data: raw(`""`)}, output: "a\uFFFDb", data: `""`,
		},
		{
			name: "does not fit once it is valid", most: 3, result: tool.Result{Output: "a\xffb"},
			output: "[ou", cuts: []tool.Cut{{Part: "output", Reference: "r/output", Bytes: 5}},
		},
		{
			name: "data was not valid", most: 9, result: tool.Result{Data: raw("\"a\xff\"")}, data: "\"a\uFFFD\"",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, cuts := output.Cut(test.result, test.most, keeper(newStore(t, 16<<20)), mark)
			assert.Equal(t, test.output, result.Output)
			assert.Equal(t, test.data, string(result.Data))
			assert.Equal(t, test.failure, result.Error)
			assert.Equal(t, test.cuts, cuts)
			assert.LessOrEqual(t, sizeForModel(result), max(test.most, 0))
			assert.LessOrEqual(t, len(result.Data), max(test.most, 0))
		})
	}
}

// sizeForModel returns the number of bytes of a result that a model reads.
func sizeForModel(r tool.Result) int {
	if !r.ModelReadsData() {
		r.Data = nil
	}
	return r.Size()
}

// perPart is the overhead of each part of the content, in addition to its text.
const perPart = 16

func TestCutContent(t *testing.T) {
	small := tool.Content{Type: "text", Text: "small"}
	long := tool.Content{Type: "text", Text: text(5000, "t")}
	image := tool.Content{Type: "image", Name: "chart.png", MIMEType: "image/png", Data: make([]byte, 3000)}
	link := tool.Content{Type: "link", URL: "https://example.com/" + text(5000, "u"), Name: "page"}
	placed := func(text string) tool.Content { return tool.Content{Type: "text", Text: text} }
	for _, test := range []struct {
		name string
		in   []tool.Content
		most int
		want []tool.Content
		cuts []tool.Cut
	}{
		{
			name: "text", in: []tool.Content{small, long}, most: 1000 + 2*perPart + len("textsmalltext"),
			want: []tool.Content{small, placed(text(959, "t") + "\n[content[1]: 959 of 5000, r/content[1]]")},
			cuts: []tool.Cut{{Part: "content[1]", Reference: "r/content[1]", Bytes: 5000, Kept: 959}},
		},
		{
			name: "texts share evenly", in: []tool.Content{long, long}, most: 2 * (500 + perPart + len("text")),
			want: []tool.Content{
				placed(text(460, "t") + "\n[content[0]: 460 of 5000, r/content[0]]"),
				placed(text(460, "t") + "\n[content[1]: 460 of 5000, r/content[1]]"),
			},
			cuts: []tool.Cut{
				{Part: "content[0]", Reference: "r/content[0]", Bytes: 5000, Kept: 460},
				{Part: "content[1]", Reference: "r/content[1]", Bytes: 5000, Kept: 460},
			},
		},
		{
			name: "image", in: []tool.Content{small, image}, most: 1000,
			want: []tool.Content{small, placed("image chart.png (image/png, 3000 bytes)\n[content[1]: 0 of 3000, ]")},
			cuts: []tool.Cut{{Part: "content[1]", Bytes: 3000}},
		},
		{
			name: "an image leaves its room to text", in: []tool.Content{image, long}, most: 2000,
			want: []tool.Content{
				placed("image chart.png (image/png, 3000 bytes)\n[content[0]: 0 of 3000, ]"),
				placed(text(2000-512-perPart-len("text")-41, "t") + "\n[content[1]: 1427 of 5000, r/content[1]]"),
			},
			cuts: []tool.Cut{{Part: "content[0]", Bytes: 3000}, {Part: "content[1]", Reference: "r/content[1]", Bytes: 5000, Kept: 1427}},
		},
		{
			name: "an image that fits stays whole", in: []tool.Content{image, long}, most: 8000,
			want: []tool.Content{image, placed(text(8000-3000-2*perPart-len("imagechart.pngimage/pngtext")-41, "t") + "\n[content[1]: 4900 of 5000, r/content[1]]")},
			cuts: []tool.Cut{{Part: "content[1]", Reference: "r/content[1]", Bytes: 5000, Kept: 4900}},
		},
		{
			name: "an image that is just as long as its share stays whole", in: []tool.Content{image, long}, most: 2 * (3000 + perPart + len("imagechart.pngimage/png")),
			want: []tool.Content{image, placed(text(3000+len("imagechart.pngimage/png")-len("text")-41, "t") + "\n[content[1]: 2978 of 5000, r/content[1]]")},
			cuts: []tool.Cut{{Part: "content[1]", Reference: "r/content[1]", Bytes: 5000, Kept: 2978}},
		},
		{
			name: "a link that is too long", in: []tool.Content{link}, most: 1000,
			want: []tool.Content{placed("link page\n[content[0]: 0 of 5058, r/content[0]]")},
			cuts: []tool.Cut{{Part: "content[0]", Reference: "r/content[0]", Bytes: 5058}},
		},
		{
			name: "small parts stay in little room", in: []tool.Content{small, small, image}, most: 600,
			want: []tool.Content{small, small, placed("image chart.png (image/png, 3000 bytes)\n[content[2]: 0 of 3000, ]")},
			cuts: []tool.Cut{{Part: "content[2]", Bytes: 3000}},
		},
		{
			name: "no place for all", in: []tool.Content{small, long, long, long, long}, most: 1100,
			want: []tool.Content{
				small,
				placed(text(503, "t") + "\n[content[1]: 503 of 5000, r/content[1]]"),
				placed("3 more parts\n[content[2:]: 0 of 15079, r/content[2:]]"),
			},
			cuts: []tool.Cut{
				{Part: "content[1]", Reference: "r/content[1]", Bytes: 5000, Kept: 503},
				{Part: "content[2:]", Reference: "r/content[2:]", Bytes: 15079},
			},
		},
		{
			name: "place for none", in: []tool.Content{image}, most: 50,
			want: []tool.Content{placed("[content[0:]: 0 of 4071, r/content[0:]]"[:30])},
			cuts: []tool.Cut{{Part: "content[0:]", Reference: "r/content[0:]", Bytes: 4071}},
		},
		{
			name: "no room for any part", in: []tool.Content{long}, most: 20, want: []tool.Content{},
			cuts: []tool.Cut{{Part: "content[0:]", Reference: "r/content[0:]", Bytes: 5027}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, cuts := output.Cut(tool.Result{Content: test.in}, test.most, keeper(newStore(t, 16<<20)), mark)
			assert.Equal(t, test.want, result.Content)
			assert.Equal(t, test.cuts, cuts)
			assert.LessOrEqual(t, result.Size(), test.most)
		})
	}
}

func TestCutLeavesWhatFits(t *testing.T) {
	result := tool.Result{
		Success: true, Output: "hello", Data: raw(`{"a":"which no model reads"}`),
		Content: []tool.Content{{Type: "text", Text: "part"}},
	}
	keep := func(string, string) string { t.Error("nothing is to be kept"); return "" }
	most := sizeForModel(result) + perPart
	var got tool.Result
	var cuts []tool.Cut
	assert.Zero(t, testing.AllocsPerRun(10, func() { got, cuts = output.Cut(result, most, keep, mark) }))
	assert.Equal(t, result, got)
	assert.Nil(t, cuts)
	assert.Same(t, &result.Data[0], &got.Data[0])
	assert.Same(t, &result.Content[0], &got.Content[0])

	_, cuts = output.Cut(result, most-1, nil, mark)
	assert.NotEmpty(t, cuts)
}

// TestCutCountsEmptyParts: parts without text can still fill a model's context window with braces.
func TestCutCountsEmptyParts(t *testing.T) {
	in := tool.Result{Content: make([]tool.Content, 1_000_000)}
	result, cuts := output.Cut(in, 4096, keeper(newStore(t, 16<<20)), mark)
	assert.Less(t, len(result.Content), 4096/perPart)
	require.Len(t, cuts, 1)
	assert.Equal(t, "content[224:]", cuts[0].Part)
	wire := noerr.Get(json.Marshal(result))(t)
	assert.Less(t, len(wire), 2*4096)

	in = tool.Result{Content: []tool.Content{{Type: text(1<<20, "y")}}}
	result, cuts = output.Cut(in, 4096, nil, mark)
	assert.Len(t, cuts, 1)
	assert.Less(t, len(result.Content[0].Type), 4096)
}

func TestCutWithoutKeeping(t *testing.T) {
	result, cuts := output.Cut(tool.Result{Output: text(200, "x")}, 100, nil, mark)
	assert.Equal(t, text(77, "x")+"\n[output: 77 of 200, ]", result.Output)
	assert.Equal(t, []tool.Cut{{Part: "output", Bytes: 200, Kept: 77}}, cuts)
}

// A mark names a reference only if the whole can be read by it.
func TestCutNamesOnlyWhatIsKept(t *testing.T) {
	store := newStore(t, 1000)
	result, cuts := output.Cut(tool.Result{Error: text(700, "e"), Output: text(700, "x")}, 300, keeper(store), mark)
	require.Len(t, cuts, 2)
	assert.Equal(t, "r/error", cuts[0].Reference)
	assert.Len(t, readAll(t, store, "r/error", 0), 700)
	assert.Empty(t, cuts[1].Reference)
	assert.Contains(t, result.Output, "of 700, ]")
}

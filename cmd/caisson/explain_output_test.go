package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/tool"
)

// TestPagesAreTheWhole: pages of any size, read one after the other, are the whole text.
func TestPagesAreTheWhole(t *testing.T) {
	for _, whole := range []string{"", "a", "hello", "€", "a€𝄞b", strings.Repeat("ä", 9)} {
		for most := range int64(len(whole) + 3) {
			var read strings.Builder
			pages := 0
			for from := int64(0); from >= 0; pages++ {
				page := pageOf(whole, from, most)
				assert.Equal(t, from, page.From)
				assert.Equal(t, int64(len(whole)), page.Total)
				assert.True(t, utf8.ValidString(page.Text))
				assert.True(t, most == 0 || int64(len(page.Text)) <= most || utf8.RuneCountInString(page.Text) == 1, "%q", page.Text)
				read.WriteString(page.Text)
				if assert.Less(t, pages, len(whole)+1); pages > len(whole) {
					return
				}
				from = page.Next
			}
			assert.Equal(t, whole, read.String(), most)
		}
	}
	middle := pageOf("€b", 1, 0)
	assert.Equal(t, tool.Page{Text: "b", From: 3, Next: -1, Total: 4}, middle, "it begins with the next character")
}

func TestPartOf(t *testing.T) {
	result := tool.Result{
		Output: "out", Error: "err", Data: []byte(`{"a":1}`),
		Content: []tool.Content{{Type: "text", Text: "first"}, {Type: "image", Data: []byte("<"), MIMEType: "image/png"}},
	}
	for part, want := range map[string]string{
		"output": "out", "error": "err", "data": `{"a":1}`, "content[0]": "first",
		"content[1]": `{"type":"image","data":"PA==","mime_type":"image/png"}`, "content[1:]": `[{"type":"image","data":"PA==","mime_type":"image/png"}]`,
	} {
		text, ok := partOf(result, part)
		assert.True(t, ok, part)
		assert.Equal(t, want, text, part)
	}
	for _, part := range []string{"", "log", "content", "content[2]", "content[-1]", "content[0:1]", "content[99999999999999999999]", "content[0].text"} {
		_, ok := partOf(result, part)
		assert.False(t, ok, part)
	}
	_, ok := partOf(tool.Result{}, "output")
	assert.False(t, ok)
	assert.Equal(t, "it returned nothing at all", partHint(tool.Result{}))
	assert.Equal(t, "name one that it did with --part: output, error, data, content[0], content[1]", partHint(result))
}

// TestReferenceOf: references are those that cuts have.
func TestReferenceOf(t *testing.T) {
	for part, want := range map[string]string{"output": "0199", "data": "0199.data", "error": "0199.error", "content[0]": "0199.content[0]"} {
		assert.Equal(t, want, referenceOf("0199", part), part)
	}
}

func TestOutputCommand(t *testing.T) {
	for want, test := range map[string]struct {
		state stateFlag
		part  string
		from  int64
	}{
		"caisson explain 0199 --output":                                      {stateFlag{}, "output", 0},
		"caisson explain 0199 --output --from 5":                             {stateFlag{}, "output", 5},
		"caisson explain 0199 --output --part data":                          {stateFlag{}, "data", 0},
		"caisson explain 0199 --output --part 'content[1:]' --from 7":        {stateFlag{}, "content[1:]", 7},
		"caisson explain 0199 --output --state-dir ./kept":                   {stateFlag{"./kept", true}, "output", 0},
		`caisson explain 0199 --output --state-dir 'it'\''s here; rm -rf .'`: {stateFlag{"it's here; rm -rf .", true}, "output", 0},
	} {
		o := &options{state: test.state}
		assert.Equal(t, want, o.outputCommand("0199", test.part, test.from))
	}
}

package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// TestAmbiguousID: the error for a prefix of several ids lists those ids and no other ones.
func TestAmbiguousID(t *testing.T) {
	ids := []string{"0199f3c2-5d1e-7aa0-b3a5-000000000001", "0199f3c2-5d1e-7aa0-b3a5-000000000002", "0199ffff-5d1e-7aa0-b3a5-000000000003"}
	kept := noerr.Get(ledger.OpenIn(t.Context(), t.TempDir(), ledger.Options{}))(t)
	for _, id := range ids {
		require.NoError(t, kept.Append(t.Context(), ledger.Entry{Record: tool.Record{CallID: id}}))
	}
	_, err := find(t.Context(), kept, "0199F3C2")
	require.NoError(t, kept.Close(t.Context()))
	var ambiguous *failure
	require.ErrorAs(t, err, &ambiguous)
	assert.Equal(t, exitUsage, ambiguous.code)
	assert.Equal(t, `the ids of several calls begin with "0199F3C2"; give more characters`, err.Error())
	require.Len(t, ambiguous.messages[0].hints, 2)
	assert.Contains(t, ambiguous.messages[0].hints[0], ids[1])
	assert.Contains(t, ambiguous.messages[0].hints[1], ids[0])
}

// TestExitCodesOfKeptCalls: an explanation names the exit code that "caisson call" had, if the kind of failure says it.
func TestExitCodesOfKeptCalls(t *testing.T) {
	for kind, want := range map[tool.Kind]string{"": "success", tool.Denied: "denied, exit code 3", tool.Internal: "internal", "made_up": "made_up"} {
		text := explained(ledger.Entry{Record: tool.Record{Result: tool.Result{Kind: kind}}}, nil).Text(nil)
		assert.Contains(t, text, "\noutcome      "+want+"\n", kind)
	}
}

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
	assert.Equal(t, "the call returned nothing", partHint(tool.Result{}))
	assert.Equal(t, "choose one of its parts with --part: output, error, data, content[0], content[1]", partHint(result))
}

package wire

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTranscriptsDoNotBeginAsJSON(t *testing.T) {
	for document, first := range map[string]byte{"": 0, " \r\n": 0, "\uFEFF": 0, "{}": '{', "\uFEFF \n{": '{', "\t[1]": '['} {
		assert.Equal(t, first, First([]byte(document)), "%q", document)
		assert.False(t, IsTranscript([]byte(document)), "%q", document)
	}
	for _, document := range []string{"data: {}", ": comment\n", "\uFEFFevent: a", "\"text\"", "hello"} {
		assert.True(t, IsTranscript([]byte(document)), "%q", document)
	}
}

func TestLeadingValues(t *testing.T) {
	for document, want := range map[string][2]string{
		``: {``, ``}, `x`: {`x`, ``}, `{}`: {`{}`, ``}, `{"a":1} `: {`{"a":1} `, ``}, `{`: {`{`, ``}, `{}]`: {`{}]`, ``},
		"{\"a\":1}\n[2]\r\n3": {`{"a":1}`, "[2]\r\n3"}, `{}{}`: {`{}`, `{}`}, `1 x`: {`1`, `x`},
	} {
		value, rest := Leading([]byte(document))
		assert.Equal(t, want, [2]string{string(value), string(rest)}, document)
	}
}

// TestTheLastEventNeedsNoBlankLine: shells and editors remove line ends at the end of a text.
func TestTheLastEventNeedsNoBlankLine(t *testing.T) {
	for _, end := range []string{"", "\n", "\r", "\r\n", "\n\n", "\r\n\r\n", "\n\n\n"} {
		var read []string
		for event, err := range Transcript([]byte("data: a\n\nevent: e\ndata: b" + end)) {
			require.NoError(t, err)
			read = append(read, event.Name+":"+string(event.Data))
		}
		assert.Equal(t, []string{":a", "e:b"}, read, "%q", end)
	}
}

package exact

import (
	"testing"

	"github.com/stretchr/testify/assert"
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

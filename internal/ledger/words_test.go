package ledger

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/tool"
)

// TestWordsBehindEscapes: the words of arguments are those of their strings, however these are written.
func TestWordsBehindEscapes(t *testing.T) {
	for arguments, words := range map[string]string{
		`{"a":"dear\nmonika\tfour"}`:     "a dear monika four",
		`{"a":"m\u00fcller"}`:            "a müller",
		`{"a":"caf\u0065\u0301 x\\ny"}`:  "a cafe\u0301 x ny",
		`{"a":"\ud835\udd38b"}`:          "a \U0001d538b",
		`{"a":"b\ud835c \ud835\u0041d"}`: "a b c d",
		`{"a":"b\u12`:                    "a b 12",
		`{"a":"b\u12xyc`:                 "a b c",
		`{"a":"b\`:                       "a b",
		`{"a":"größe"}`:                  "a größe",
	} {
		e := &Entry{Record: tool.Record{Call: tool.Call{Function: tool.Function{Arguments: arguments}}}}
		assert.Equal(t, words, strings.Join(wordsOf(e), " "), arguments)
	}
}

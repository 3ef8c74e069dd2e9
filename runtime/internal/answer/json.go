package answer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/tool"
)

// maxResultDepth is the maximum nesting depth of the JSON of a result. That of arguments is the same.
const maxResultDepth = tool.MaxArgumentsDepth

// maxReadDepth is the maximum nesting depth of JSON that is only read to find members in it, as in the standard
// library.
const maxReadDepth = 10_000

// unusableJSON is the reason why valid JSON is not accepted as a result: programs and providers would disagree about
// its meaning, or refuse it.
type unusableJSON string

func (u unusableJSON) Error() string { return string(u) }

var errNotJSON = errors.New("it is not JSON")

// checkJSON checks JSON that is sent to programs and providers. The error is errNotJSON, an unusableJSON or the
// context's.
func checkJSON(ctx context.Context, text []byte) error {
	_, err := jsontext.Read(ctx, string(text), jsontext.Limits{
		Depth: maxResultDepth, Values: len(text) + 1, Shallow: true, Name: checkName, Number: checkNumber,
	})
	wrong, ok := errors.AsType[*jsontext.Error](err)
	if !ok {
		return err
	}
	switch unusable, ok := errors.AsType[unusableJSON](wrong.Err); {
	case ok:
		return unusable
	case wrong.Err == jsontext.ErrRepeated:
		return unusableJSON(tool.Shown(wrong.Error(), 2*maxShown) + "; print it once")
	case wrong.Err == jsontext.ErrDepth:
		return unusableJSON(fmt.Sprintf("it is nested deeper than %d levels", maxResultDepth))
	}
	return errNotJSON
}

// checkName refuses names that could be the same once they are UTF-8.
func checkName(name string) error {
	if !utf8.ValidString(name) {
		return unusableJSON("it has a key that is not valid UTF-8")
	}
	return nil
}

// checkNumber refuses numbers that are too large for programs to read.
func checkNumber(literal string) error {
	if len(literal) < 300 && !bytes.ContainsAny([]byte(literal), "eE") {
		return nil
	}
	if _, err := strconv.ParseFloat(literal, 64); err != nil {
		return unusableJSON(fmt.Sprintf("it has the number %s, which is too large", tool.Shown(literal, maxShown)))
	}
	return nil
}

// readJSON reads the outermost value of a guest's JSON. Of members with the same name, the last one counts. It stops
// when ctx ends.
func readJSON(ctx context.Context, text []byte, limits jsontext.Limits) (*jsontext.Document, error) {
	limits.Depth, limits.Repeated, limits.Shallow = maxReadDepth, true, true
	doc, err := jsontext.Read(ctx, string(text), limits)
	if err == nil || len(text) >= longOutput {
		return doc, err
	}
	if fault := jsontext.FaultIn(string(text)); fault != nil {
		err = fault
	}
	return doc, err
}

// compact returns JSON without white space between its values. In its strings, invalid Unicode becomes U+FFFD, as in
// any other text.
func compact(raw []byte) (json.RawMessage, error) {
	var text bytes.Buffer
	err := json.Compact(&text, raw)
	return unicodeOnly(text.Bytes()), err
}

// unicodeOnly replaces invalid UTF-8 and the escapes of unpaired surrogates in JSON.
func unicodeOnly(text []byte) []byte {
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	for at := 0; ; {
		n := bytes.IndexByte(text[at:], '\\')
		if n < 0 {
			return text
		}
		at += n
		switch high, low := surrogate(text[at:]); {
		case !high && !low:
			at += len(`\n`)
		case high && followedByLow(text[at:]):
			at += len(`\ud83c\udf27`)
		default:
			copy(text[at:], `\ufffd`)
			at += len(`\ufffd`)
		}
	}
}

// surrogate reports whether a text begins with the escape of the first or the second half of a
// character.
func surrogate(text []byte) (high, low bool) {
	if len(text) < len(`\ud83c`) || text[1] != 'u' || text[2]|0x20 != 'd' {
		return false, false
	}
	return bytes.IndexByte([]byte("89abAB"), text[3]) >= 0, bytes.IndexByte([]byte("cdefCDEF"), text[3]) >= 0
}

func followedByLow(text []byte) bool {
	next := text[len(`\ud83c`):]
	_, low := surrogate(next)
	return low && next[0] == '\\'
}

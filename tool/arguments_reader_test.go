package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// tokenwise reads arguments with the standard library's decoder alone: slowly, and in the
// plainest way. It is what [ParseArguments] is held against.
func tokenwise(text string) ([]member, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if err := checkJSON(text); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if opening, err := decoder.Token(); err != nil || opening != json.Delim('{') {
		return nil, errors.New("want a JSON object")
	}
	var members []member
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		members = append(members, member{key.(string), value})
	}
	return members, nil
}

// manyNames is the text of an object with a number of members and then one more.
func manyNames(count int, last string) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, `"n%d":%d,`, i, i)
	}
	return "{" + b.String() + last + "}"
}

// FuzzReadMembers: the quick reader and the plain one take the same texts, and find the
// same members in them, letter by letter.
func FuzzReadMembers(f *testing.F) {
	for _, seed := range []string{
		``, ` `, `{}`, "\t{ } \r\n", "{}\u00a0", "\u00a0{}", "{}\v\u2003", `{"a":1}{}`, `[{}]`, `null`, `"{}"`, `1e999`, `{`, `{"a"`, `{"a":}`, `{"a":1,}`, `{,}`, `[1,]`,
		`{"a":[{"b":null}, [ ], { } ,true,false,-1.5e+3],"c":"\ud800"}`, `{"a":1,"a":2}`, `{"a\"b":"\\","a\\":"\"}"}`, `{"\u0061b":1,"ab":2}`, `{"\ud800":1,"\udfff":2}`,
		`{"x":{"a":1,"b":{},"a":2}}`, `{"\u200b":1}`, "{\"\u200b\":1}", "{\"\x7f\":1}", "{\"\\u0000\":1e999}", "{\"a\x00\":1}", `{"é":"ü","É":1}`,
		manyNames(8, `"n7":1`), manyNames(8, `"n8":1`), manyNames(9, `"n8":1`), manyNames(40, `"n39":1`), manyNames(40, `"x":1`),
		strings.Repeat(`{"a":`, MaxArgumentsDepth) + "1" + strings.Repeat("}", MaxArgumentsDepth),
		strings.Repeat(`{"a":`, MaxArgumentsDepth) + "[]" + strings.Repeat("}", MaxArgumentsDepth),
		`{"a":` + strings.Repeat("[", MaxArgumentsDepth) + strings.Repeat("]", MaxArgumentsDepth) + `}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseArguments(text)
		if len(text) > MaxArgumentsBytes || !utf8.ValidString(text) {
			require.ErrorIs(t, err, ErrArguments)
			return
		}
		want, wantErr := tokenwise(text)
		require.Equal(t, wantErr == nil, err == nil, "%v, and plainly %v", err, wantErr)
		require.Equal(t, want, got.members)
		if err != nil {
			require.ErrorContains(t, err, wantErr.Error())
		}
	})
}

package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests/internal/keypath"
)

// tokenDecoder decodes with the tokens of the standard library: slowly, and in the
// plainest way. It is what decode is held against.
type tokenDecoder struct {
	decoder // for its bounds
	tokens  *json.Decoder
}

func decodeTokens(text []byte, limit bounds) (document, error) {
	d := tokenDecoder{decoder{limit: limit}, json.NewDecoder(bytes.NewReader(text))}
	d.tokens.UseNumber()
	root, err := d.value(position{})
	if err != nil {
		return document{}, err
	}
	return document{root, d.longestPath, d.longestName, d.mostMembers, d.mostElements}, nil
}

func (d *tokenDecoder) value(at position) (any, error) {
	d.longestPath = max(d.longestPath, at.pathBytes)
	token, err := d.tokens.Token()
	if err != nil {
		return nil, &textError{"", err.Error()}
	}
	if err := d.take(token); err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		if at.depth >= MaxDepth {
			return nil, &textError{"", fmt.Sprintf("nested deeper than %d levels", MaxDepth)}
		}
		if token == '{' {
			return d.object(at)
		}
		return d.array(at)
	case json.Number:
		if message := checkNumber(string(token)); message != "" {
			return nil, &textError{"", message}
		}
		return token, nil
	default:
		return token, nil
	}
}

func (d *tokenDecoder) object(at position) (any, error) {
	members := map[string]any{}
	for d.tokens.More() {
		token, err := d.tokens.Token()
		if err != nil {
			return nil, &textError{"", err.Error()}
		}
		key, _ := token.(string)
		if len(key) > d.limit.nameBytes {
			return nil, &textError{"", fmt.Sprintf("a name is %d bytes long, over the limit of %d", len(key), d.limit.nameBytes)}
		}
		d.longestName = max(d.longestName, len(key))
		if err := d.takeMember(len(members), key); err != nil {
			return nil, err
		}
		if _, twice := members[key]; twice {
			return nil, &textError{keypath.Key("", key), "the key stands twice in one object; give it once"}
		}
		if members[key], err = d.value(at.inside(len(key))); err != nil {
			return nil, below(keypath.Key("", key), err)
		}
	}
	d.mostMembers = max(d.mostMembers, len(members))
	_, err := d.tokens.Token()
	return members, err
}

func (d *tokenDecoder) array(at position) (any, error) {
	elements := []any{}
	for d.tokens.More() {
		if err := d.spend(elementBytes); err != nil {
			return nil, err
		}
		element, err := d.value(at.inside(len("000")))
		if err != nil {
			return nil, below(keypath.Index("", len(elements)), err)
		}
		elements = append(elements, element)
	}
	d.mostElements = max(d.mostElements, len(elements))
	_, err := d.tokens.Token()
	return elements, err
}

// take counts the memory of one value without what is inside it.
func (d *tokenDecoder) take(token json.Token) error {
	switch token := token.(type) {
	case json.Delim:
		return d.spend(containerBytes)
	case json.Number:
		return d.spend(scalarBytes + len(token))
	case string:
		return d.spend(scalarBytes + len(token))
	}
	return nil
}

// FuzzDecode: both decoders find the same values, or the same fault.
func FuzzDecode(f *testing.F) {
	var members strings.Builder
	for i := range 12 {
		fmt.Fprintf(&members, `,"n%d":%d`, i, i)
	}
	for _, seed := range []string{
		`{}`, ` [ ] `, `"x"`, `1`, "\tnull\n", `true `, `[true,false,null,-1.5e+3,0,[ ],{ },"",{"a":[{"b":"c"}]}]`,
		`{"a\"b":"\\","a\\":"\"}","\u0061":"\ud83d\ude00\ud800"}`, `{"\u0061":1,"a":2}`, `{"a":{"b":[1,{"c":1,"c":2}]}}`, `"é ü"`,
		`[1e400]`, `{"a":[1e401,2]}`, `[0e9999999]`, `[` + strings.Repeat("1", 200) + `]`, `{"` + strings.Repeat("n", 40) + `":1}`,
		"{" + members.String()[1:] + "}", strings.Repeat("[", 70) + strings.Repeat("]", 70), "[" + strings.Repeat(`{"":0},`, 40) + "1]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !utf8.Valid(text) || !json.Valid(text) {
			_, err := decode(t.Context(), text, bounds{1 << 20, 32, 8 << 10})
			require.Error(t, err)
			return
		}
		for _, limit := range []bounds{{1 << 20, 32, 8 << 10}, {1 << 20, 1 << 10, 48 << 20}} {
			got, err := decode(t.Context(), text, limit)
			want, wantErr := decodeTokens(text, limit)
			require.Equal(t, wantErr, err)
			require.Equal(t, want, got)
		}
	})
}

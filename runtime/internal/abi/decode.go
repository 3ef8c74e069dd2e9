package abi

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/tool"
)

// decodeRequest reads a request: a JSON object that has all required members, no unknown ones and no duplicates. An
// empty text means an empty object. The error is a [problem].
func decodeRequest(text string, members decode.Members, required ...string) error {
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	request, err := tool.ParseArguments(text) // strict, and bounded
	if err != nil {
		return invalid(cause(err))
	}
	return decodeMembers(request.Document().Root(), members, required)
}

// maxDepth is the maximum nesting depth of the members of a call of another tool. Their readers limit it further.
const maxDepth = 10_000

// decodeCall is like decodeRequest, for a request with a member that may be nested as deeply as a tool's
// arguments. It parses only the outermost object. Members keep their text.
func decodeCall(text string, members decode.Members, required ...string) error {
	if !utf8.ValidString(text) {
		return invalid("the text is not valid UTF-8")
	}
	document, err := jsontext.Parse(text, jsontext.Limits{Depth: maxDepth, Shallow: true})
	switch {
	case errors.Is(err, jsontext.ErrRepeated):
		return invalid(err.Error())
	case err != nil:
		return invalid("not JSON: " + err.Error())
	case document.Root().Kind() != jsontext.Object:
		return invalid("not a JSON object")
	}
	return decodeMembers(document.Root(), members, required)
}

func decodeMembers(request jsontext.Value, members decode.Members, required []string) error {
	err := decode.Object(request, members, required...)
	if wrong, ok := errors.AsType[*decode.Error](err); ok {
		key := jsontext.Key(wrong.Path, func(name string) string { return tool.Shown(name, 64) })
		return invalid("the member " + key + " " + wrong.Problem)
	}
	return err
}

// cause returns the problem with a request, given the error of [tool.ParseArguments].
func cause(err error) string {
	if wrong, ok := errors.AsType[*tool.ArgumentsError](err); ok {
		return wrong.Err.Error()
	}
	return err.Error()
}

// number reads an integer that fits 32 bits and has no sign, fraction or exponent.
func number(to *uint32) decode.Reader {
	return func(v jsontext.Value) error {
		read, err := strconv.ParseUint(v.Text(), 10, 32)
		if err != nil {
			return decode.Wrong(v, "must be a whole number from 0 to 4294967295")
		}
		*to = uint32(read)
		return nil
	}
}

// fraction reads a number. The stream checks its range.
func fraction(to **float64) decode.Reader {
	return func(v jsontext.Value) error {
		read, err := strconv.ParseFloat(v.Text(), 64)
		if v.Kind() != jsontext.Number || err != nil {
			return decode.Wrong(v, "must be a number from 0 to 1")
		}
		*to = &read
		return nil
	}
}

func anything(to *json.RawMessage) decode.Reader {
	return func(v jsontext.Value) error {
		*to = json.RawMessage(v.Text())
		return nil
	}
}

func pairs(to *[][2]string) decode.Reader {
	return func(list jsontext.Value) error {
		ok := list.Kind() == jsontext.Array
		*to = make([][2]string, list.Len())
		for i, pair := range list.Elements() {
			ok = ok && pair.Kind() == jsontext.Array && pair.Len() == 2
			for j, text := range pair.Elements() {
				if ok = ok && text.Kind() == jsontext.String; !ok {
					break
				}
				(*to)[i][j] = strings.Clone(text.String())
			}
		}
		if !ok {
			return decode.Wrong(list, `must be a list of pairs of strings, such as [["Accept","text/html"]]`)
		}
		return nil
	}
}

func arguments(to *string) decode.Reader {
	return func(v jsontext.Value) error {
		if _, err := tool.ParseArguments(v.Text()); err != nil {
			return decode.Wrong(v, "must be an object of arguments, which it is not: %s", cause(err))
		}
		*to = strings.Clone(v.Text())
		return nil
	}
}

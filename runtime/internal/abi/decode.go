package abi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/tool"
)

// field is one member of a request.
type field struct {
	name     string
	optional bool
	read     reader
}

// reader reads the JSON of a member. If the value is invalid, it returns what it wanted.
type reader func(value json.RawMessage) (wanted string)

// decode reads a request: a JSON object that has all required fields, no unknown ones and no
// duplicates. The error is a [problem].
func decode(text string, fields ...field) error {
	request, err := tool.ParseArguments(text) // strict, and bounded
	if err != nil {
		return invalid(cause(err))
	}
	for _, name := range request.Names() {
		if err := checkMember(name, fields); err != nil {
			return err
		}
	}
	return readFields(request, fields)
}

// deepest is how deeply the members of such a request may nest, which their readers limit further.
const deepest = 10_000

// decodeAround is like decode, for a request with a member that may be nested as deeply as a tool's
// arguments. It parses only the outermost object. Members keep their text.
func decodeAround(text string, fields ...field) error {
	if !utf8.ValidString(text) {
		return invalid("the text is not valid UTF-8")
	}
	document, err := jsontext.Parse(text, jsontext.Limits{Depth: deepest, Shallow: true, Repeated: true})
	if err != nil {
		return invalid("not JSON: " + err.Error())
	}
	if document.Root().Kind() != jsontext.Object {
		return invalid("not a JSON object")
	}
	var request tool.Arguments
	for key, value := range document.Root().Members() {
		name := key.String()
		if err := checkMember(name, fields); err != nil {
			return err
		}
		if _, twice := request.Get(name); twice {
			return invalid(fmt.Sprintf("the name %.64q occurs twice in one object", name))
		}
		request = request.With(name, json.RawMessage(value.Text()))
	}
	return readFields(request, fields)
}

// cause returns what is wrong with a request, given the error of [tool.ParseArguments].
func cause(err error) string {
	return strings.TrimPrefix(err.Error(), tool.ErrArguments.Error()+": ")
}

// checkMember refuses an unknown member.
func checkMember(name string, fields []field) error {
	if slices.ContainsFunc(fields, func(f field) bool { return f.name == name }) {
		return nil
	}
	if len(fields) == 0 {
		return invalid(fmt.Sprintf("unknown member %.64q; the request has none", name))
	}
	return invalid(fmt.Sprintf("unknown member %.64q; the members are %s", name, names(fields)))
}

func readFields(request tool.Arguments, fields []field) error {
	for _, f := range fields {
		value, there := request.Get(f.name)
		switch {
		case !there && f.optional:
			continue
		case !there:
			return invalid("the member " + f.name + " is missing")
		}
		if wanted := f.read(value); wanted != "" {
			return invalid("the member " + f.name + " must be " + wanted)
		}
	}
	return nil
}

func names(fields []field) string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = f.name
	}
	return strings.Join(list, ", ")
}

// text reads a string.
func text(into *string) reader {
	return func(value json.RawMessage) string {
		var read *string // nil for null
		if json.Unmarshal(value, &read) != nil || read == nil {
			return "a string"
		}
		*into = *read
		return ""
	}
}

// number reads an integer that fits 32 bits and has no sign, fraction or exponent.
func number(into *uint32) reader {
	return func(value json.RawMessage) string {
		read, err := strconv.ParseUint(string(value), 10, 32)
		if err != nil {
			return "a whole number from 0 to 4294967295"
		}
		*into = uint32(read)
		return ""
	}
}

// pairs reads a list of pairs of strings.
func pairs(into *[][2]string) reader {
	const wanted = `a list of pairs of strings, such as [["Accept","text/html"]]`
	return func(value json.RawMessage) string {
		var read [][]*string // nil for null
		if json.Unmarshal(value, &read) != nil || read == nil {
			return wanted
		}
		list := make([][2]string, len(read))
		for i, pair := range read {
			if len(pair) != 2 || pair[0] == nil || pair[1] == nil {
				return wanted
			}
			list[i] = [2]string{*pair[0], *pair[1]}
		}
		*into = list
		return ""
	}
}

// object reads the arguments of a tool and keeps their text.
func object(into *string) reader {
	return func(value json.RawMessage) string {
		if _, err := tool.ParseArguments(string(value)); err != nil {
			return "an object of arguments, which it is not: " + cause(err)
		}
		*into = string(value)
		return ""
	}
}

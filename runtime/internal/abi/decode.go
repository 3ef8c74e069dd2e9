package abi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// field is one member of a request.
type field struct {
	name     string
	optional bool
	read     reader
}

// reader reads the JSON of a member. If that is not what it takes, it says what it wants.
type reader func(value json.RawMessage) (wanted string)

// decode reads a request: a JSON object with all fields that are not optional, no others, and
// none twice. The error is a [problem].
func decode(text string, fields ...field) error {
	object, err := tool.ParseArguments(text) // strict, and bounded
	if err != nil {
		return invalid(strings.TrimPrefix(err.Error(), tool.ErrArguments.Error()+": "))
	}
	for _, name := range object.Names() {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.name == name }) {
			return invalid(fmt.Sprintf("unknown member %.64q; the members are %s", name, names(fields)))
		}
	}
	for _, f := range fields {
		value, there := object.Get(f.name)
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

// number reads a whole number that fits 32 bits, without sign, fraction or exponent.
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

package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/tool"
)

// Bodies are read by the project's own reader of JSON: it keeps the text of what is passed on, and it refuses names that
// occur twice, which encoding/json accepts.

// maxDepth is how deeply a body may be nested: arguments may be as deep as tools accept, within a list within an object.
const maxDepth = tool.MaxArgumentsDepth + 8

// members are the members that an object may have, by name, each with a function that takes the value.
type members map[string]func(jsontext.Value) error

// decodeObject reads an object whose members are all known. The error is a refusal.
func decodeObject(text string, fields members) error {
	if !utf8.ValidString(text) {
		return refuse(http.StatusBadRequest, "the body is not valid UTF-8")
	}
	document, err := jsontext.Parse(text, jsontext.Limits{Depth: maxDepth})
	if err != nil {
		var at *jsontext.Error
		if errors.As(err, &at) {
			return refuse(http.StatusBadRequest, "the body cannot be read at byte %d: %s%s", at.Offset, at, within(at.Path))
		}
		return refuse(http.StatusBadRequest, "the body cannot be read: %s", err)
	}
	return object(document.Root(), fields)
}

// object takes the members of an object, all of which must be known. A null is a value like others: one that stood for a
// member that is absent would give an agent that a program forgot to set all tools.
func object(v jsontext.Value, fields members) error {
	if v.Kind() != jsontext.Object {
		return mistake(v, "must be an object")
	}
	for name, value := range v.Members() {
		take := fields[name.String()]
		if take == nil {
			return mistake(value, "is not known; known are %s", strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		}
		if err := take(value); err != nil {
			return err
		}
	}
	return nil
}

// mistake refuses a value that is not of the document's schema.
func mistake(v jsontext.Value, format string, arguments ...any) error {
	return refuseValue(http.StatusBadRequest, v, format, arguments...)
}

// refuseValue refuses a value with a status.
func refuseValue(status int, v jsontext.Value, format string, arguments ...any) error {
	where := pathOf(v.Path())
	if where == "" {
		where = "the body"
	}
	return refuse(status, "%s %s", where, fmt.Sprintf(format, arguments...))
}

func within(path []jsontext.Step) string {
	if where := pathOf(path); where != "" {
		return ", in " + where
	}
	return ""
}

// pathOf writes a path for people.
func pathOf(path []jsontext.Step) string {
	return jsontext.Key(path, func(name string) string { return tool.Shown(name, 64) })
}

// text takes a string.
func text(to *string) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		if v.Kind() != jsontext.String {
			return mistake(v, "must be a string")
		}
		*to = v.String()
		return nil
	}
}

// flag takes true or false.
func flag(to *bool) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		if v.Kind() != jsontext.Bool {
			return mistake(v, "must be true or false")
		}
		*to = v.Text() == "true"
		return nil
	}
}

// number takes a number from 0 to most.
func number(to *float64, most float64) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		parsed, err := strconv.ParseFloat(v.Text(), 64)
		if v.Kind() != jsontext.Number || err != nil || parsed < 0 || parsed > most {
			return mistake(v, "must be a number from 0 to %g", most)
		}
		*to = parsed
		return nil
	}
}

// whole takes an integer from 0 to limit. 1.0 is one too, as in JSON Schema.
func whole(to *int, limit int) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		parsed, err := strconv.ParseFloat(v.Text(), 64)
		if v.Kind() != jsontext.Number || err != nil || parsed != math.Trunc(parsed) || parsed < 0 || parsed > float64(limit) {
			return mistake(v, "must be an integer from 0 to %d", limit)
		}
		*to = int(parsed)
		return nil
	}
}

// raw takes any value as it is written. A null is as if it were absent.
func raw(to *json.RawMessage) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		if v.Kind() != jsontext.Null {
			*to = json.RawMessage(v.Text())
		}
		return nil
	}
}

// rawObject takes an object as it is written.
func rawObject(to *json.RawMessage) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		if v.Kind() != jsontext.Object {
			return mistake(v, "must be an object")
		}
		return raw(to)(v)
	}
}

// elements takes an array of at most most elements.
func elements(most int, take func(jsontext.Value) error) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		if v.Kind() != jsontext.Array {
			return mistake(v, "must be an array")
		}
		if v.Len() > most {
			return mistake(v, "has %d elements, over the limit of %d", v.Len(), most)
		}
		for _, element := range v.Elements() {
			if err := take(element); err != nil {
				return err
			}
		}
		return nil
	}
}

// texts takes an array of strings. An empty one is not nil.
func texts(to *[]string, most int) func(jsontext.Value) error {
	each := elements(most, func(v jsontext.Value) error {
		var one string
		if err := text(&one)(v); err != nil {
			return err
		}
		*to = append(*to, one)
		return nil
	})
	return func(v jsontext.Value) error {
		*to = []string{}
		return each(v)
	}
}

// dictionary takes an object with any names.
func dictionary(take func(name string, value jsontext.Value) error) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		if v.Kind() != jsontext.Object {
			return mistake(v, "must be an object")
		}
		for name, value := range v.Members() {
			if err := take(name.String(), value); err != nil {
				return err
			}
		}
		return nil
	}
}

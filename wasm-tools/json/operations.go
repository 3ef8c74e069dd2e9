package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/wasm-tools/json/internal/document"
	"github.com/caisson-run/caisson/wasm-tools/json/internal/jsonpath"
)

func itself(part, _ *document.Node, _ arguments) (outcome, error) { return outcome{value: part}, nil }

// keys returns the names of an object's members, or those of all objects in an array, each once.
func keys(part, _ *document.Node, _ arguments) (outcome, error) {
	objects := []*document.Node{part}
	if part.Kind == jsontext.Array {
		objects = part.Elements
	}
	names, seen := document.NewArray(), map[string]bool{}
	for _, object := range objects {
		if object.Kind != jsontext.Object {
			if part.Kind == jsontext.Array {
				return outcome{},
					errors.New("only objects have keys, and the array holds " + object.Noun() + "; name an object with path")
			}
			return outcome{}, errors.New("only objects have keys, and this is " + object.Noun() + "; name an object with path")
		}
		for _, member := range object.Members {
			if !seen[member.Name] {
				seen[member.Name] = true
				names.Elements = append(names.Elements, &document.Node{Kind: jsontext.String, Text: member.Quoted})
			}
		}
	}
	return outcome{value: names}, nil
}

// query returns the values that a JSONPath finds, and where they are.
func query(n, _ *document.Node, a arguments) (outcome, error) {
	text := strings.TrimSpace(*a.Path)
	if strings.HasPrefix(text, "/") {
		return outcome{},
			errors.New("path: it is a JSON Pointer, which the operation get takes; write a JSONPath such as $.items[0]")
	}
	q, err := jsonpath.Parse(text)
	if err != nil {
		return outcome{}, fmt.Errorf("path: %w", err)
	}
	found, err := q.Find(n)
	if err != nil {
		return outcome{}, fmt.Errorf("path: %w", err)
	}
	values, paths, length := document.NewArray(), []string{}, 0
	for _, match := range found {
		values.Elements = append(values.Elements, match.Value)
		if length <= maxEmbedded {
			paths = append(paths, match.Path())
			length += len(paths[len(paths)-1]) + len(`"",`)
		}
	}
	data := map[string]any{"type": "array", "count": len(found)}
	if length <= maxEmbedded {
		data["paths"] = paths
	}
	return outcome{values, data}, nil
}

func sortKeys(part, _ *document.Node, _ arguments) (outcome, error) {
	part.Sort()
	return outcome{value: part}, nil
}

func flatten(part, _ *document.Node, _ arguments) (outcome, error) {
	flat, err := part.Flatten()
	return outcome{value: flat}, err
}

func patch(part, other *document.Node, _ arguments) (outcome, error) {
	patched, err := document.Patch(part, other)
	if err != nil {
		return outcome{}, fmt.Errorf("patch: %w", err)
	}
	return outcome{value: patched}, nil
}

func mergePatch(part, other *document.Node, _ arguments) (outcome, error) {
	return outcome{value: document.MergePatch(part, other)}, nil
}

func diff(part, other *document.Node, _ arguments) (outcome, error) {
	return outcome{value: document.Diff(part, other)}, nil
}

func mergeDiff(part, other *document.Node, _ arguments) (outcome, error) {
	made, err := document.MergeDiff(part, other)
	return outcome{value: made}, err
}

// Limits of values in the data of a result.
const (
	maxEmbedded = 256 << 10 // bytes
	maxNumber   = 128       // characters
	maxExponent = 400
	maxName     = 1024
)

// embedded returns the text of a value for data, unless data could not hold it.
func embedded(n *document.Node) (json.RawMessage, bool) {
	if !fits(n) {
		return nil, false
	}
	text, err := n.Write(0)
	return json.RawMessage(text), err == nil && len(text) <= maxEmbedded
}

func fits(n *document.Node) bool {
	if n.Kind == jsontext.String && hasHalfOfPair(n.Text) {
		return false
	}
	if n.Kind == jsontext.Number {
		if len(n.Text) > maxNumber {
			return false
		}
		if at := strings.IndexAny(n.Text, "eE"); at >= 0 {
			exponent, err := strconv.Atoi(n.Text[at+1:])
			return err == nil && -maxExponent <= exponent && exponent <= maxExponent
		}
	}
	for _, element := range n.Elements {
		if !fits(element) {
			return false
		}
	}
	for _, member := range n.Members {
		if len(member.Quoted) > maxName || hasHalfOfPair(member.Quoted) || !fits(member.Value) {
			return false
		}
	}
	return true
}

// hasHalfOfPair reports whether a string in quotes has an escape that is half of a surrogate pair, which is no
// character.
func hasHalfOfPair(quoted string) bool {
	high := false // whether the escape before is the first half of a pair
	for {
		at := strings.IndexByte(quoted, '\\')
		if high && at != 0 || at < 0 {
			return high
		}
		quoted = quoted[at+1:]
		var unit uint64
		if quoted[0] == 'u' {
			unit, _ = strconv.ParseUint(quoted[1:5], 16, 16)
			quoted = quoted[4:]
		}
		quoted = quoted[1:]
		if low := unit >= 0xDC00 && unit < 0xE000; low != high {
			return true
		}
		high = unit >= 0xD800 && unit < 0xDC00
	}
}

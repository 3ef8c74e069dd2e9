package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/tool"
)

// readResult reads a result object: {"success": bool, "output", "data", "error",
// "content"}. Keys are told apart by case, unknown ones are left alone, and what only
// the host may say, such as the kind of a failure, is not among them.
func readResult(ctx context.Context, output []byte) (tool.Result, error) {
	members := []string{"success", "output", "data", "error", "content"}
	isMember := func(name string) bool { return slices.Contains(members, name) }
	doc, err := readJSON(ctx, output, jsontext.Limits{Values: len(output) + 1, Keep: isMember})
	if err == nil && doc.Root().Kind() != jsontext.Object {
		err = errNoObject
	}
	if err != nil {
		return tool.Result{}, fmt.Errorf("want a JSON object: %w", err)
	}
	if doc.Root().Get("success").Kind() == 0 {
		return tool.Result{}, fmt.Errorf("it has no member \"success\"")
	}
	var result tool.Result
	for _, member := range []struct {
		name string
		read func(raw json.RawMessage) error
	}{
		{"success", into(&result.Success)}, {"output", into(&result.Output)}, {"error", into(&result.Error)},
		{"content", func(raw json.RawMessage) (err error) {
			result.Content, err = readContent(ctx, raw)
			return err
		}},
		{"data", func(raw json.RawMessage) error {
			var compact bytes.Buffer
			if string(raw) != "null" {
				err = json.Compact(&compact, raw)
				result.Data = compact.Bytes()
			}
			return err
		}},
	} {
		value := doc.Root().Get(member.name)
		if value.Kind() == 0 {
			continue
		}
		if ctx.Err() != nil {
			return tool.Result{}, ctx.Err()
		}
		start, end := value.Span()
		if err := member.read(output[start:end]); err != nil {
			return tool.Result{}, fmt.Errorf("member %q: %w", member.name, err)
		}
	}
	if !result.Success && result.Error == "" {
		result.Error = "the tool reported failure and did not say why"
	}
	if result.Success {
		result.Error = ""
	}
	return result, nil
}

// into reads a value into a variable.
func into(variable any) func(raw json.RawMessage) error {
	return func(raw json.RawMessage) error { return json.Unmarshal(raw, variable) }
}

// maxResultDepth is how deep a result may nest, as for the standard library.
const maxResultDepth = 10_000

// readJSON reads the outermost value of what a guest has written, of which the last member of
// each name counts. It ends with ctx.
func readJSON(ctx context.Context, text []byte, limits jsontext.Limits) (*jsontext.Document, error) {
	limits.Depth, limits.Repeated, limits.Shallow = maxResultDepth, true, true
	doc, err := jsontext.Read(ctx, string(text), limits)
	if err == nil || len(text) >= longOutput {
		return doc, err
	}
	if syntax := jsontext.Syntax(string(text)); syntax != nil {
		err = syntax
	}
	return doc, err
}

// errNoObject refuses an output.
var errNoObject = errors.New("it is something else, or more than one value")

// maxParts is how many parts a result may have: each takes some ten times as much of the host's memory,
// and of a record, as a guest writes for it.
const maxParts = 1000

var errParts = fmt.Errorf("there are more than %d parts", maxParts)

// readContent reads the parts of a result, one after the other.
func readContent(ctx context.Context, list []byte) ([]tool.Content, error) {
	doc, err := readJSON(ctx, list, jsontext.Limits{Values: maxParts + 1})
	if errors.Is(err, jsontext.ErrValues) {
		return nil, errParts
	}
	if err != nil {
		return nil, err
	}
	content := []tool.Content{}
	if doc.Root().Kind() != jsontext.Array {
		err := json.Unmarshal(list, &content) // null, or an error that says what it is
		return content, err
	}
	for _, element := range doc.Root().Elements() {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var part tool.Content
		start, end := element.Span()
		if err := json.Unmarshal(list[start:end], &part); err != nil {
			return nil, err
		}
		content = append(content, part)
	}
	return content, nil
}

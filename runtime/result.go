package runtime

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/caisson-run/caisson/tool"
)

// readResult reads a result object: {"success": bool, "output", "data", "error",
// "content"}. Keys are told apart by case, unknown ones are left alone, and what only
// the host may say, such as the kind of a failure, is not among them.
func readResult(ctx context.Context, output []byte) (tool.Result, error) {
	members, err := readMembers(ctx, output)
	if err != nil {
		return tool.Result{}, fmt.Errorf("want a JSON object: %w", err)
	}
	if _, ok := members["success"]; !ok {
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
	} {
		if raw, ok := members[member.name]; ok {
			if ctx.Err() != nil {
				return tool.Result{}, ctx.Err()
			}
			if err := member.read(raw); err != nil {
				return tool.Result{}, fmt.Errorf("member %q: %w", member.name, err)
			}
		}
	}
	if raw, ok := members["data"]; ok && !bytes.Equal(raw, []byte("null")) && ctx.Err() == nil {
		var compact bytes.Buffer
		if err := json.Compact(&compact, raw); err != nil {
			return tool.Result{}, fmt.Errorf("member \"data\": %w", err)
		}
		result.Data = compact.Bytes()
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

// readMembers returns the members of an object that a result has, the last of each name.
func readMembers(ctx context.Context, object []byte) (members map[string]json.RawMessage, err error) {
	if len(object) < longOutput { // and read faster at once
		err = json.Unmarshal(object, &members)
		return members, err
	}
	return walkMembers(ctx, object)
}

// walkMembers reads one member after the other, since there may be so many that they outlast ctx.
func walkMembers(ctx context.Context, object []byte) (map[string]json.RawMessage, error) {
	decoder := newDecoder(ctx, object)
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return nil, cmp.Or(err, errNoObject)
	}
	members := map[string]json.RawMessage{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, err
		}
		switch name {
		case "success", "output", "error", "content", "data":
			members[name.(string)] = raw
		}
	}
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, cmp.Or(err, errNoObject)
	}
	return members, nil
}

// errNoObject refuses an output.
var errNoObject = errors.New("it is something else, or more than one value")

// maxParts is how many parts a result may have: each takes some ten times as much of the host's memory,
// and of a record, as a guest writes for it.
const maxParts = 1000

var errParts = fmt.Errorf("there are more than %d parts", maxParts)

// readContent reads the parts of a result.
func readContent(ctx context.Context, list []byte) (content []tool.Content, err error) {
	if len(list) >= longOutput {
		return walkContent(ctx, list)
	}
	if err = json.Unmarshal(list, &content); err == nil && len(content) > maxParts {
		return nil, errParts
	}
	return content, err
}

// walkContent reads one part after the other, as walkMembers does.
func walkContent(ctx context.Context, list []byte) ([]tool.Content, error) {
	decoder := newDecoder(ctx, list)
	start, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	content := []tool.Content{}
	if start != json.Delim('[') {
		err := json.Unmarshal(list, &content) // null, or an error that says what it is
		return content, err
	}
	for decoder.More() {
		if len(content) == maxParts {
			return nil, errParts
		}
		var part tool.Content
		if err := decoder.Decode(&part); err != nil {
			return nil, err
		}
		content = append(content, part)
	}
	_, err = decoder.Token() // the end, or why there was no more
	return content, err
}

// newDecoder returns a decoder of a text that fails once ctx has ended.
func newDecoder(ctx context.Context, text []byte) *json.Decoder {
	return json.NewDecoder(&boundReader{ctx: ctx, text: text})
}

// boundReader reads a text, piece by piece, until its context has ended.
type boundReader struct {
	ctx  context.Context
	text []byte
}

// Read implements io.Reader.
func (r *boundReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if len(r.text) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), longOutput)], r.text)
	r.text = r.text[n:]
	return n, nil
}

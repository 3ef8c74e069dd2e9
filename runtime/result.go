package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/tool"
)

// readResult reads a result object: {"success": bool, "output", "data", "error", "content"}. Keys
// are case-sensitive. Members of other names are data: with "data", if there is one, they make up
// the object that the result's data becomes. A guest cannot set what only the host decides, such as
// the kind of a failure.
func readResult(ctx context.Context, output []byte) (tool.Result, error) {
	var result tool.Result
	known := map[string]func(raw []byte) error{
		"success": into(&result.Success), "output": into(&result.Output), "error": into(&result.Error),
		"content": func(raw []byte) (err error) {
			result.Content, err = readContent(ctx, raw)
			return err
		},
		"data": func(raw []byte) (err error) {
			if string(raw) != "null" {
				result.Data, err = compact(raw)
			}
			return err
		},
	}
	isKnown := func(name string) bool { return known[name] != nil }
	doc, err := readJSON(ctx, output, jsontext.Limits{Values: len(output) + 1, Keep: isKnown})
	if err == nil && doc.Root().Kind() != jsontext.Object {
		err = errNoObject
	}
	if err != nil {
		return tool.Result{}, fmt.Errorf("want a JSON object: %w", err)
	}
	if doc.Root().Get("success").Kind() == 0 {
		return tool.Result{}, fmt.Errorf("it has no member \"success\"")
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		value := doc.Root().Get(name)
		if value.Kind() == 0 {
			continue
		}
		if ctx.Err() != nil {
			return tool.Result{}, ctx.Err()
		}
		start, end := value.Span()
		if err := known[name](output[start:end]); err != nil {
			return tool.Result{}, fmt.Errorf("member %q: %w", name, err)
		}
	}
	others := otherMembers(doc.Root(), output)
	if result.Success && result.Error != "" {
		others = append(append(others, `,"error":`...), doc.Root().Get("error").Text()...)
		result.Error = ""
	}
	if len(others) == 0 {
		return result, nil
	}
	if result.Data != nil {
		others = append(append(others, `,"data":`...), result.Data...)
	}
	others[0] = '{'
	result.Data, err = compact(append(others, '}'))
	return result, err
}

// otherMembers returns the text of the members of an object that were not kept when it was read, with
// a comma before each: what is left between those that were.
func otherMembers(object jsontext.Value, text []byte) (others []byte) {
	add := func(between []byte) {
		if between = bytes.Trim(between, ", \t\r\n"); len(between) > 0 {
			others = append(append(others, ','), between...)
		}
	}
	start, end := object.Span()
	at := start + 1
	for name, value := range object.Members() {
		next, _ := name.Span()
		add(text[at:next])
		_, at = value.Span()
	}
	add(text[at : end-1])
	return others
}

func into(variable any) func(raw []byte) error {
	return func(raw []byte) error { return json.Unmarshal(raw, variable) }
}

func compact(raw []byte) (json.RawMessage, error) {
	var text bytes.Buffer
	err := json.Compact(&text, raw)
	return text.Bytes(), err
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

// errNoObject means that an output is not exactly one JSON object.
var errNoObject = errors.New("it is not exactly one JSON object")

// maxParts is how many parts a result may have. In the host's memory and in a record, each takes
// some ten times as many bytes as the guest writes for it.
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

// longOutput is the size in bytes from which outputs are read in pieces, a few at a time.
const longOutput = 64 << 10

// takeReader waits until the call's output may be read, if it is long. At most GOMAXPROCS long
// outputs are read at a time: if many calls end just before their deadlines, reading all outputs at
// once would make all of them late. takeReader is given how the guest ended and returns how the
// call ends: a call whose turn does not come before its deadline is late.
func (r *run) takeReader(ended error) (give func(), err error) {
	var exit *wasi.ExitError
	if ended != nil && !errors.As(ended, &exit) || len(r.stdout.Bytes) < longOutput {
		return func() {}, ended
	}
	readers := r.tool.runtime.readers
	select {
	case readers <- struct{}{}:
		return func() { <-readers }, ended
	case <-r.deadline.Done():
		return func() {}, r.deadline.Err()
	}
}

// isFailure reports whether a program that exits with this code has failed, whatever it printed.
func (r *run) isFailure(code uint32) bool {
	return code != 0 && !slices.Contains(r.tool.manifest.Module.SuccessCodes, int(code))
}

// read returns the result for the program's output and exit code, and for a failure the reason that
// the tool itself gave; result.Error may be one of ours. The error is the deadline's.
func (r *run) read(code uint32) (result tool.Result, words string, err error) {
	m := r.tool.manifest
	result, malformed := readOutput(r.deadline, m.Module.Stdout, r.stdout.Bytes)
	if err := r.deadline.Err(); err != nil {
		return tool.Result{}, "", err
	}
	failed := r.isFailure(code)
	switch {
	case failed && (malformed != nil || result.Success):
		result.Success, result.Error = false, fmt.Sprintf("the tool exited with code %d", code)
	case malformed != nil:
		result.Error = malformed.Error()
	case !result.Success && result.Error == "":
		result.Error = "the tool reported a failure and did not say why"
	case !result.Success:
		words = result.Error
	case m.Result != nil:
		data := result.Data
		if data == nil {
			data = json.RawMessage("null")
		}
		err := m.Result.Validate(r.deadline, data)
		if late := r.deadline.Err(); late != nil {
			return tool.Result{}, "", late
		}
		if err != nil {
			result = tool.Result{Error: "the tool's data does not fit its result schema: " + err.Error()}
		}
	}
	return result, words, nil
}

// readOutput reads a program's output in the manifest's mode. The error says that it is malformed.
// If ctx has ended, both are meaningless.
func readOutput(ctx context.Context, mode manifests.Stdout, output []byte) (tool.Result, error) {
	switch mode {
	case manifests.StdoutText:
		return text(output), nil
	case manifests.StdoutJSON:
		return data(ctx, output)
	case manifests.StdoutResult:
		result, err := readResult(ctx, output)
		if err != nil {
			err = fmt.Errorf("the tool's output is not a result object: %w", err)
		}
		return result, err
	}
	if !json.Valid(output) {
		return text(output), nil
	}
	if mayHaveSuccess(output) {
		if result, err := readResult(ctx, output); err == nil {
			return result, nil
		}
	}
	return data(ctx, output)
}

// mayHaveSuccess reports whether JSON may have a member "success", without decoding it. Most
// output has none and skips the slower result decoding.
func mayHaveSuccess(output []byte) bool {
	return bytes.Contains(output, []byte(`"success"`)) || bytes.Contains(output, []byte(`\u`))
}

func text(output []byte) tool.Result {
	result := tool.Result{Success: true, Output: string(output)}
	if !utf8.ValidString(result.Output) { // costs a fraction of ToValidUTF8
		result.Output = strings.ToValidUTF8(result.Output, "\uFFFD")
	}
	return result
}

func data(ctx context.Context, output []byte) (tool.Result, error) {
	if ctx.Err() != nil {
		return tool.Result{}, ctx.Err()
	}
	data, err := compact(output)
	if err != nil {
		return tool.Result{}, errors.New("the tool's output is not JSON")
	}
	return tool.Result{Success: true, Output: strings.TrimSpace(string(output)), Data: data}, nil
}

// maskGrace is how long masking the log may take after the call's deadline. The log of a late call
// is the most useful one. The grace is far shorter than how late a call may be.
const maskGrace = 20 * time.Millisecond

// unmaskedLog replaces a log that could not be masked in time.
const unmaskedLog = "[log omitted: there was no time to mask secrets in it]\n"

// mask masks secrets in everything that the guest can influence. The guest cannot read a secret,
// but a server may have sent it one in a form that response masking missed. mask is given how the
// guest ended and returns how the call ends. What cannot be masked before the deadline is not
// shown; if that is the output, the call is late.
func (r *run) mask(ended error) error {
	secrets := r.tool.permit.secrets
	if r.host.permitted == nil || secrets.Longest() == 0 {
		return ended
	}
	var exit *wasi.ExitError
	var err error
	if ended != nil && !errors.As(ended, &exit) {
		r.stdout.Bytes = nil // it is not shown to anyone
	} else if r.stdout.Bytes, err = secrets.MaskFirst(r.deadline, r.stdout.Bytes, len(r.stdout.Bytes)); err != nil {
		ended = err
	}
	r.stderr.Bytes = r.maskedLog()
	text := secrets.MaskText
	for i := range r.denials {
		d := &r.denials[i]
		d.Value, d.Rule = text(d.Value), text(d.Rule)
		for _, rule := range []*json.RawMessage{&d.Allow.Manifest, &d.Allow.Grant} {
			if text(string(*rule)) != string(*rule) {
				*rule = nil // a masked rule would allow something else
			}
		}
	}
	for i := range r.hostCalls {
		r.hostCalls[i].Target = text(r.hostCalls[i].Target)
	}
	return ended
}

// maskedLog returns the guest's log with secrets masked.
func (r *run) maskedLog() []byte {
	log := r.stderr.Bytes
	masked, err := r.tool.permit.secrets.MaskFirst(r.deadline, log, len(log))
	if err == nil {
		return masked
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.deadline), maskGrace)
	defer cancel()
	if masked, err = r.tool.permit.secrets.MaskFirst(ctx, log, len(log)); err != nil {
		return []byte(unmaskedLog)
	}
	return masked
}

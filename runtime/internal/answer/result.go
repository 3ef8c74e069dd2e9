package answer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/tool"
)

// longOutput is the size in bytes from which outputs are read in pieces, a few at a time.
const longOutput = 64 << 10

// takeReader waits until the call's output may be read, if it is long. At most GOMAXPROCS long
// outputs are read at a time: if many calls end just before their deadlines, reading all outputs at
// once would make all of them late. takeReader is given how the guest ended and returns how the
// call ends: a call whose turn does not come before its deadline is late.
func (a *Answer) takeReader(ctx context.Context, ended error) (give func(), err error) {
	if !mayBeRead(ended) || len(a.Stdout.Bytes) < longOutput {
		return func() {}, ended
	}
	select {
	case a.Readers <- struct{}{}:
		return func() { <-a.Readers }, ended
	case <-ctx.Done():
		return func() {}, ctx.Err()
	}
}

// mayBeRead reports whether the output of a guest that ended in this way is its result.
func mayBeRead(ended error) bool {
	if ended == nil {
		return true
	}
	_, exited := errors.AsType[*wasi.ExitError](ended)
	return exited
}

// isFailure reports whether a program that exits with this code has failed, whatever it printed.
func (a *Answer) isFailure(code uint32) bool {
	return code != 0 && !slices.Contains(a.Manifest.Module.SuccessCodes, int(code))
}

// reading is the result of a program by its output and exit code.
type reading struct {
	tool.Result
	reason string // in the tool's own words; empty if it gave none
	ours   bool   // the host found the fault, in a result that the tool reports as a success
}

// read returns the result of the program by its output and exit code. The error is the deadline's.
//
// The reason of a failure is the error of its result object. Without that, it is what the tool wrote
// last: the end of its log or, if that is empty, of its output.
func (a *Answer) read(ctx context.Context, code uint32) (reading, error) {
	m := a.Manifest
	said, malformed := readOutput(ctx, m.Module.Stdout, a.Stdout.Bytes)
	if err := ctx.Err(); err != nil {
		return reading{}, err
	}
	if m.Module.Language != modules.LanguageNone && len(a.Stdout.Bytes) == 0 && malformed != nil {
		malformed = errors.New("the script ended before it returned a result")
	}
	a.leftOut, a.illFormed = said.leftOut, illFormed(a.Stdout.Bytes)
	result, failed := said.Result, a.Returned != 0 || a.isFailure(code)
	if a.Plugin != nil && len(a.Plugin.Error) > 0 {
		reason := strings.ToValidUTF8(string(a.Plugin.Error), "\uFFFD")
		if malformed != nil {
			result = tool.Result{Output: lastOf(string(a.Stdout.Bytes), maxWords, false)}
		}
		result.Success, result.Error = false, markReason(reason)
		return reading{Result: result, reason: reason}, nil
	}
	switch {
	case malformed != nil: // the host has only the output
		result = tool.Result{Output: lastOf(string(a.Stdout.Bytes), maxWords, false)}
	case !result.Success && result.Error != "":
		reason := result.Error
		result.Error = markReason(reason)
		return reading{Result: result, reason: reason}, nil
	case result.Success && !failed:
		return a.checkResult(ctx, said)
	}
	log, what := a.lastWords(maxWords), ""
	switch {
	case a.Returned != 0:
		what = fmt.Sprintf("the tool returned %d", int64(a.Returned))
	case failed:
		what = fmt.Sprintf("the tool exited with code %d", code)
	case malformed != nil:
		what = malformed.Error()
	case result.Output == "" && a.quote("", log) == "":
		what = "the tool reported a failure and did not say why"
	default:
		what = "the tool reported a failure"
	}
	result.Success, result.Error = false, a.quote(what, log)
	return reading{Result: result,
		reason: lastLine(cmp.Or(a.lastWords(maxReason), lastOf(result.Output, maxReason, false)))}, nil
}

// checkResult returns the result of a tool that reports a success, if its data fits its result schema. Members in
// addition to "data" for which the schema has no place are left out.
func (a *Answer) checkResult(ctx context.Context, said object) (reading, error) {
	schema := a.Manifest.Result
	if schema == nil {
		return reading{Result: said.Result}, nil
	}
	data := said.Data
	if data == nil {
		data = json.RawMessage("null")
	}
	wrong := schema.Validate(ctx, data)
	if wrong != nil && said.bare != nil && schema.Validate(ctx, said.bare) == nil {
		said.Data, wrong = said.bare, nil
		a.leftOut = namesOfMembers(slices.Concat(said.dropped, said.added))
	}
	if late := ctx.Err(); late != nil {
		return reading{}, late
	}
	if wrong != nil {
		return reading{Result: tool.Result{Error: "the tool's data does not fit its result schema: " + wrong.Error()},
			ours: true}, nil
	}
	return reading{Result: said.Result}, nil
}

// theToolSays is before the words of a tool that look like the host's, or that follow the host's.
const theToolSays = "the tool says: "

// markReason returns a reason that the tool gave. A reason that begins with "the tool" is the host's, unless
// the tool says it.
func markReason(reason string) string {
	if strings.HasPrefix(reason, "the tool") {
		return theToolSays + reason
	}
	return reason
}

// readOutput reads a program's output in the manifest's mode. The error says that it is malformed.
// If ctx has ended, both are meaningless.
func readOutput(ctx context.Context, mode modules.Stdout, output []byte) (object, error) {
	switch mode {
	case modules.StdoutText:
		return object{Result: text(output)}, nil
	case modules.StdoutJSON:
		result, err := data(ctx, output)
		return object{Result: result}, err
	case modules.StdoutResult:
		said, err := readObject(ctx, output)
		return said, notObject(err)
	}
	if !json.Valid(output) {
		return object{Result: text(output)}, nil
	}
	if mayHaveSuccess(output) {
		said, err := readObject(ctx, output)
		if _, unusable := errors.AsType[unusableJSON](err); unusable {
			return object{}, notObject(err)
		}
		if err == nil {
			return said, nil
		}
	}
	result, err := data(ctx, output)
	if err != nil { // people and models may read it all the same
		result = text(output)
	}
	return object{Result: result}, nil
}

func notObject(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the tool's output is not a result object: %w", err)
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

func illFormed(output []byte) (n int) {
	if utf8.Valid(output) { // costs a fraction of the loop
		return 0
	}
	for len(output) > 0 {
		c, size := utf8.DecodeRune(output)
		if c == utf8.RuneError && size == 1 {
			n++
		}
		output = output[size:]
	}
	return n
}

func data(ctx context.Context, output []byte) (tool.Result, error) {
	if err := checkJSON(ctx, output); errors.Is(err, errNotJSON) {
		return tool.Result{}, errors.New("the tool's output is not JSON")
	} else if err != nil {
		return tool.Result{}, fmt.Errorf("the tool's output cannot be used: %w", err)
	}
	result := text(bytes.TrimSpace(output))
	var err error
	result.Data, err = compact(output)
	return result, err
}

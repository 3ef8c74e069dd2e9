package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/tool"
)

// longOutput is from how many bytes on a call's output is read in turn.
const longOutput = 64 << 10

// takeReader waits until the call's output may be read, if it is long. No more are read at once
// than there are processors: of what many calls have written just before their deadlines, all
// would be read slowly, and all too late. It is given how the guest ended, and returns how the call
// does: one whose turn does not come before its deadline is late.
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

// read makes a result of what the program printed and its exit code. A program that
// exits with anything but 0 has failed, whatever it printed. The error is that of the deadline.
func (r *run) read(code uint32) (tool.Result, error) {
	m := r.tool.manifest
	result := readOutput(r.deadline, m.Module.Stdout, r.stdout.Bytes)
	if err := r.deadline.Err(); err != nil {
		return tool.Result{}, err
	}
	if result.Success && code != 0 {
		result.Success = false
		result.Error = fmt.Sprintf("the tool exited with code %d", code)
	}
	if result.Success && m.Result != nil {
		data := result.Data
		if data == nil {
			data = json.RawMessage("null")
		}
		err := m.Result.Validate(r.deadline, data)
		if late := r.deadline.Err(); late != nil {
			return tool.Result{}, late
		}
		if err != nil {
			result = tool.Result{Error: "the tool's data does not fit its result schema: " + err.Error()}
		}
	}
	if !result.Success {
		result.Kind = tool.ToolFailed
	}
	return result, nil
}

// readOutput reads a program's output as its manifest says. Output that does not fit
// makes a failed result. Once ctx has ended, what it returns is of no use.
func readOutput(ctx context.Context, mode manifests.Stdout, output []byte) tool.Result {
	switch mode {
	case manifests.StdoutText:
		return text(output)
	case manifests.StdoutJSON:
		if !json.Valid(output) {
			return tool.Result{Error: "the tool's output is not JSON"}
		}
		return data(ctx, output)
	case manifests.StdoutResult:
		result, err := readResult(ctx, output)
		if err != nil {
			return tool.Result{Error: "the tool's output is not a result object: " + err.Error()}
		}
		return result
	}
	if !json.Valid(output) {
		return text(output)
	}
	if mayHaveSuccess(output) {
		if result, err := readResult(ctx, output); err == nil {
			return result
		}
	}
	return data(ctx, output)
}

// mayHaveSuccess reports whether JSON may have a member "success", without reading it: most
// output has none, and is read faster.
func mayHaveSuccess(output []byte) bool {
	return bytes.Contains(output, []byte(`"success"`)) || bytes.Contains(output, []byte(`\u`))
}

func text(output []byte) tool.Result {
	result := tool.Result{Success: true, Output: string(output)}
	if !utf8.ValidString(result.Output) { // which costs a fraction of what ToValidUTF8 does
		result.Output = strings.ToValidUTF8(result.Output, "\uFFFD")
	}
	return result
}

func data(ctx context.Context, output []byte) tool.Result {
	if ctx.Err() != nil {
		return tool.Result{}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, output); err != nil {
		return tool.Result{Error: "the tool's output is not JSON"}
	}
	return tool.Result{Success: true, Output: strings.TrimSpace(string(output)), Data: compact.Bytes()}
}

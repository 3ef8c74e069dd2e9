package runtime

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// read makes a result of what the program printed and its exit code. A program that
// exits with anything but 0 has failed, whatever it printed.
func (r *run) read(code uint32) tool.Result {
	m := r.tool.manifest
	result := readOutput(m.Module.Stdout, r.stdout.Bytes)
	if result.Success && code != 0 {
		result.Success = false
		result.Error = fmt.Sprintf("the tool exited with code %d", code)
	}
	if result.Success && m.Result != nil {
		data := result.Data
		if data == nil {
			data = json.RawMessage("null")
		}
		if err := m.Result.Validate(data); err != nil {
			result = tool.Result{Error: "the tool's data does not fit its result schema: " + err.Error()}
		}
	}
	if !result.Success {
		result.Kind = tool.ToolFailed
	}
	return result
}

// readOutput reads a program's output as its manifest says. Output that does not fit
// makes a failed result.
func readOutput(mode manifests.Stdout, output []byte) tool.Result {
	switch mode {
	case manifests.StdoutText:
		return text(output)
	case manifests.StdoutJSON:
		if !json.Valid(output) {
			return tool.Result{Error: "the tool's output is not JSON"}
		}
		return data(output)
	case manifests.StdoutResult:
		result, err := readResult(output)
		if err != nil {
			return tool.Result{Error: "the tool's output is not a result object: " + err.Error()}
		}
		return result
	}
	if !json.Valid(output) {
		return text(output)
	}
	if mayHaveSuccess(output) {
		if result, err := readResult(output); err == nil {
			return result
		}
	}
	return data(output)
}

// mayHaveSuccess reports whether JSON may have a member "success", without reading it: most
// output has none, and is read faster.
func mayHaveSuccess(output []byte) bool {
	return bytes.Contains(output, []byte(`"success"`)) || bytes.Contains(output, []byte(`\u`))
}

func text(output []byte) tool.Result {
	return tool.Result{Success: true, Output: strings.ToValidUTF8(string(output), "\uFFFD")}
}

func data(output []byte) tool.Result {
	var compact bytes.Buffer
	if err := json.Compact(&compact, output); err != nil {
		return tool.Result{Error: "the tool's output is not JSON"}
	}
	return tool.Result{Success: true, Output: strings.TrimSpace(string(output)), Data: compact.Bytes()}
}

// readResult reads a result object: {"success": bool, "output", "data", "error",
// "content"}. Keys are told apart by case, unknown ones are left alone, and what only
// the host may say, such as the kind of a failure, is not among them.
func readResult(output []byte) (tool.Result, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(output, &members); err != nil {
		return tool.Result{}, fmt.Errorf("want a JSON object: %w", err)
	}
	if _, ok := members["success"]; !ok {
		return tool.Result{}, fmt.Errorf("it has no member \"success\"")
	}
	var result tool.Result
	for _, member := range []struct {
		name string
		into any
	}{
		{"success", &result.Success}, {"output", &result.Output}, {"error", &result.Error}, {"content", &result.Content},
	} {
		if raw, ok := members[member.name]; ok {
			if err := json.Unmarshal(raw, member.into); err != nil {
				return tool.Result{}, fmt.Errorf("member %q: %w", member.name, err)
			}
		}
	}
	if raw, ok := members["data"]; ok && !bytes.Equal(raw, []byte("null")) {
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

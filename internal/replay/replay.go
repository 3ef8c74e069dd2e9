// Package replay holds the inputs of a call: what the host answered its guest, so that the call can be run again with
// the same result. Package runtime makes and replays them.
//
// The package is for this module's own packages.
package replay

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// MaxBytes bounds the answers that are kept of one call, before they are compressed.
const MaxBytes = 8 << 20

// version is that of the format of the inputs.
const version = 1

// Inputs is everything that a call's guest got from the host.
type Inputs struct {
	Version int `json:"version"`
	// Module and Manifest are digests, in hexadecimal: of the module or the script, and of what the manifest says about
	// how calls run.
	Module   string `json:"module"`
	Manifest string `json:"manifest"`
	Limits   Limits `json:"limits"`
	// CallersFuel is set if Limits.Fuel is the fuel that the calling tool had left.
	CallersFuel bool `json:"callers_fuel,omitempty"`
	// Image is the started program that the call resumed; nil if the call started it.
	Image *Image `json:"image,omitempty"`
	// Denials are the receipts, and Unread says that the guest did not read its input: they decide what a failure says.
	Denials []tool.Denial `json:"denials,omitempty"`
	Unread  bool          `json:"unread,omitempty"`
	// NotReplayable is why the call cannot be replayed; empty if it can.
	NotReplayable string `json:"not_replayable,omitempty"`
	Steps         int    `json:"steps"`         // calls of host functions
	Log           []byte `json:"log,omitempty"` // the steps, compressed (RFC 1951)
}

// Limits are those on which results depend.
type Limits struct {
	Memory int64 `json:"memory"` // bytes, as the next two
	Output int64 `json:"output"`
	Stderr int64 `json:"stderr"`
	Fuel   int64 `json:"fuel,omitempty"` // of the call; zero for none
}

// Image identifies a started program: the same seed and clock start an equal one.
type Image struct {
	Seed  []byte `json:"seed"`           // of its random bytes
	Clock int64  `json:"clock"`          // where its clock begins, in nanoseconds since 1970
	Fuel  int64  `json:"fuel,omitempty"` // that the call paid for a start
	// Environment and Mounts are what the starting program got of the operator's permissions.
	Environment []string `json:"environment,omitempty"`
	Mounts      []Mount  `json:"mounts,omitempty"`
}

// Mount is a directory that a tool is granted. Starting programs see no more of it.
type Mount struct {
	Path   string `json:"path"` // the guest's
	Access string `json:"access"`
}

// Encode returns the JSON of the inputs, with these steps.
func (in Inputs) Encode(steps []byte) (json.RawMessage, error) {
	in.Version = version
	if len(steps) > 0 {
		var log bytes.Buffer
		w, err := flate.NewWriter(&log, flate.BestSpeed)
		if err == nil {
			_, err = w.Write(steps)
		}
		if err = errors.Join(err, w.Close()); err != nil {
			return nil, err
		}
		in.Log = log.Bytes()
	}
	return json.Marshal(in)
}

// seedBytes is the length of an image's seed.
const seedBytes = 32

// Decode returns the inputs with this JSON, and their steps. Any error is a [*Refusal].
func Decode(text json.RawMessage) (in Inputs, steps []byte, err error) {
	if err := json.Unmarshal(text, &in); err != nil {
		return in, nil, refuse("its recorded inputs cannot be read: %w", err)
	}
	switch {
	case in.Version != version:
		return in, nil, refuse("its inputs were recorded in version %d of the format, and this program reads version %d",
			in.Version, version)
	case in.NotReplayable != "":
		return in, nil, refuse("%s", in.NotReplayable)
	case in.Image != nil && (len(in.Image.Seed) != seedBytes || in.Image.Fuel < 0), in.Limits.Fuel < 0, in.Steps < 0,
		in.Limits.Memory <= 0, in.Limits.Output <= 0, in.Limits.Stderr <= 0:
		return in, nil, refuse("its recorded inputs are damaged")
	}
	r := flate.NewReader(bytes.NewReader(in.Log))
	if len(in.Log) > 0 {
		steps, err = io.ReadAll(io.LimitReader(r, 2*MaxBytes+1)) // the answers, and where they go
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return in, nil, refuse("its recorded inputs are damaged: %w", err)
	}
	if len(steps) > 2*MaxBytes {
		return in, nil, refuse("its recorded inputs are damaged: they have more than %d bytes", 2*MaxBytes)
	}
	return in, steps, nil
}

// Summary is what people see of inputs.
type Summary struct {
	Bytes         int    `json:"bytes"` // of the JSON
	Steps         int    `json:"steps"`
	NotReplayable string `json:"not_replayable,omitempty"`
}

// Summarize returns the summary of inputs, as JSON, and nil for none.
func Summarize(inputs json.RawMessage) json.RawMessage {
	if inputs == nil {
		return nil
	}
	summary := Summary{Bytes: len(inputs)}
	_ = json.Unmarshal(inputs, &summary) // what cannot be read is zero
	summary.Bytes = len(inputs)
	text, err := json.Marshal(summary)
	if err != nil {
		return nil
	}
	return text
}

// Withhold returns inputs that have only the reason why they are not kept, and nil for none.
func Withhold(inputs json.RawMessage, reason string) json.RawMessage {
	if inputs == nil {
		return nil
	}
	text, err := Inputs{NotReplayable: reason}.Encode(nil)
	if err != nil {
		return nil
	}
	return text
}

// Refusal is why a call cannot be replayed.
type Refusal struct{ Err error }

// Error completes "the call cannot be replayed: ".
func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

func refuse(format string, arguments ...any) *Refusal {
	return &Refusal{fmt.Errorf(format, arguments...)}
}

// Refuse returns a [*Refusal] with this text.
func Refuse(format string, arguments ...any) error { return refuse(format, arguments...) }

// Divergence is the first step of a replay that differs from the record.
type Divergence struct {
	Step     int    // counted from 1
	Called   string // what the guest called, such as "fd_read(0, 1024, 1, 1040)"; empty if it ended
	Recorded string // what the record has; empty if it has no more steps
	What     string // what differs, if the two are equal
}

// Error says what differs.
func (d *Divergence) Error() string {
	var text string
	switch {
	case d.Called == "":
		text = fmt.Sprintf("the guest ended, the record has %s", d.Recorded)
	case d.Recorded == "":
		text = fmt.Sprintf("the guest called %s, the record has no more steps", d.Called)
	case d.Called == d.Recorded:
		text = fmt.Sprintf("the guest called %s as in the record, but %s", d.Called, d.What)
	default:
		text = fmt.Sprintf("the guest called %s, the record has %s", d.Called, d.Recorded)
	}
	return fmt.Sprintf("step %d: %s", d.Step, text)
}

// Difference is a part of the outcome that a replay changed.
type Difference struct {
	Part     string `json:"part"` // such as "output" or "fuel"
	Recorded string `json:"recorded"`
	Replayed string `json:"replayed"`
}

// Compare compares the results and the fuel of a recorded call and its replay, bit for bit.
func Compare(recorded, replayed tool.Result, fuel, fuelAgain *int64) (differences []Difference) {
	add := func(part, was, is string) {
		if was != is {
			differences = append(differences, Difference{part, was, is})
		}
	}
	text := func(value any) string {
		encoded, err := json.Marshal(value)
		if err != nil {
			return err.Error()
		}
		return string(encoded)
	}
	if recorded.Kind == tool.ToolFailed && replayed.Kind == tool.ToolFailed && replayed.Error == "" {
		replayed.Error = recorded.Error // the executor's words for a tool that gave no reason
	}
	add("success", text(recorded.Success), text(replayed.Success))
	add("kind", string(recorded.Kind), string(replayed.Kind))
	add("error", strings.ToValidUTF8(recorded.Error, "\uFFFD"), strings.ToValidUTF8(replayed.Error, "\uFFFD"))
	add("output", strings.ToValidUTF8(recorded.Output, "\uFFFD"), strings.ToValidUTF8(replayed.Output, "\uFFFD"))
	add("data", text(recorded.Data), text(replayed.Data))
	add("content", text(recorded.Content), text(replayed.Content))
	add("fuel", text(fuel), text(fuelAgain))
	return differences
}

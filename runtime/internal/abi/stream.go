package abi

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/caisson-run/caisson/hostfuncs/stream"
	"github.com/caisson-run/caisson/tool"
)

// maxEmission is the maximum length of a request to emit, in bytes. It is larger than maxRequest to
// allow for partial images. The call's limit for all its emissions, which is lower by default, is
// checked before any of the request is read.
const maxEmission = tool.MaxEmission

// streamEmit shows an emission before the call has ended. The emission always belongs to the
// guest's own call: a request cannot name another.
func streamEmit(c *call) (answer, error) {
	if c.session.Stream == nil {
		return answer{}, unavailable("the tool has no stream")
	}
	request, err := c.view(0, "request", "request_bytes", maxEmission)
	if err != nil {
		return answer{}, err
	}
	if err := c.session.Stream.Admit(len(request)); err != nil {
		return answer{}, emitFailure(err)
	}
	var emission tool.Emission
	if late := c.session.Work.do(c.ctx, func() { emission, err = decodeEmission(string(request)) }); late != nil {
		return answer{}, late
	}
	if err != nil {
		return answer{}, err
	}
	err = c.session.Stream.Emit(c.ctx, emission)
	switch {
	case c.ctx.Err() != nil: // reading and masking a long emission takes time
		return answer{}, context.Cause(c.ctx)
	case err != nil:
		return answer{}, emitFailure(err)
	}
	return answer{status: statusOK}, nil
}

func decodeEmission(request string) (tool.Emission, error) {
	var kind string
	var emission tool.Emission
	err := decode(request,
		field{name: "type", read: text(&kind)},
		field{name: "text", read: text(&emission.Text), optional: true},
		field{name: "data", read: anything(&emission.Data), optional: true},
		field{name: "fraction", read: fraction(&emission.Fraction), optional: true},
		field{name: "mime_type", read: text(&emission.MIMEType), optional: true},
		field{name: "partial", read: truth(&emission.Partial), optional: true},
	)
	emission.Type = tool.EmissionType(kind)
	return emission, err
}

// emitFailure returns the failure of an emission as the guest may see it.
func emitFailure(err error) error {
	var failure *stream.Error
	if !errors.As(err, &failure) {
		return err
	}
	switch {
	case errors.Is(failure.Kind, stream.ErrInvalid):
		return invalid(failure.Message)
	case errors.Is(failure.Kind, stream.ErrLimit):
		return limited("output", failure.Bytes)
	case errors.Is(failure.Kind, stream.ErrUnavailable):
		return unavailable(failure.Message)
	}
	return err
}

// anything reads any JSON value. The value may alias the request's text.
func anything(into *json.RawMessage) reader {
	return func(value json.RawMessage) string {
		*into = value
		return ""
	}
}

// fraction reads a number.
func fraction(into **float64) reader {
	return func(value json.RawMessage) string {
		var read *float64 // nil for null
		if json.Unmarshal(value, &read) != nil || read == nil {
			return "a number from 0 to 1"
		}
		*into = read
		return ""
	}
}

// truth reads true or false.
func truth(into *bool) reader {
	return func(value json.RawMessage) string {
		var read *bool // nil for null
		if json.Unmarshal(value, &read) != nil || read == nil {
			return "true or false"
		}
		*into = *read
		return ""
	}
}

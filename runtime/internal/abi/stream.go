package abi

import (
	"context"

	"github.com/caisson-run/caisson/internal/jsontext/decode"
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
		return answer{}, failureOf(err)
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
		return answer{}, failureOf(err)
	}
	return answer{status: statusOK}, nil
}

func decodeEmission(request string) (tool.Emission, error) {
	var kind string
	var emission tool.Emission
	err := decodeRequest(request, decode.Members{
		"type": decode.Text(&kind), "text": decode.Text(&emission.Text), "data": anything(&emission.Data),
		"fraction": fraction(&emission.Fraction), "mime_type": decode.Text(&emission.MIMEType),
		"partial": decode.Bool(&emission.Partial),
	}, "type")
	emission.Type = tool.EmissionType(kind)
	return emission, err
}

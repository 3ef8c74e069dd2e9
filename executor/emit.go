package executor

import (
	"bytes"

	"github.com/caisson-run/caisson/tool"
)

// Emit implements [tool.Host].
func (c *call) Emit(emission tool.Emission) error {
	if c.nest.enter() == nil {
		return &tool.Error{Op: "emit", Tool: c.tool, Kind: tool.Cancelled, Message: "the call has ended"}
	}
	defer c.nest.leave()
	if err := emission.Check(); err != nil {
		return err
	}
	if c.batch.stream == nil || c.parent != nil || c.hidden() {
		return nil
	}
	emission.Data = bytes.Clone(emission.Data) // the tool may change it
	if emission.Fraction != nil {
		fraction := *emission.Fraction
		emission.Fraction = &fraction
	}
	event := c.batch.event(tool.CallOutput)
	c.describe(&event)
	event.Emission = &emission
	c.batch.stream.offer(event)
	return nil
}

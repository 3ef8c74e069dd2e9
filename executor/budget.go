package executor

import (
	"fmt"
	"math"

	"github.com/caisson-run/caisson/executor/internal/output"
	"github.com/caisson-run/caisson/tool"
)

// cut shortens a model's call's result to its share, and keeps what is cut for the session.
// What tools ask of each other is theirs: the tools' own limits bound it.
func (b *batch) cut(c *call) {
	c.whole, _ = output.Cut(c.record.Result, math.MaxInt, nil, b.mark) // all of it, made valid UTF-8
	c.record.Result = c.whole
	if c.parent != nil {
		return
	}
	keep := b.session.cut.Keeper(func(part string) string { return reference(c.record.CallID, part) })
	c.record.Result, c.record.Cuts = output.Cut(c.whole, b.share, keep, b.mark)
}

// reference names the whole of a part of a call's result. The output's is the call's own id.
func reference(callID, part string) string {
	if part == "output" {
		return callID
	}
	return callID + "." + part
}

// mark is what stands in a part in place of what was cut.
func (b *batch) mark(cut tool.Cut) string {
	text := fmt.Sprintf("[%s cut: %d of %d bytes are here", cut.Part, cut.Kept, cut.Bytes)
	if hint := b.hint(cut); hint != "" {
		text += "; " + hint
	}
	return text + "]"
}

func (b *batch) hint(cut tool.Cut) string {
	switch {
	case cut.Reference == "":
		return "the rest is not kept"
	case b.executor.options.Output.Hint != nil:
		return b.ownHint(cut)
	}
	if entry, ok, _ := lookUp(b.executor.resolver, OutputToolName); ok && (b.allowed == nil || b.allowed[entry.Name]) {
		if _, ours := entry.Tool.(outputTool); ours {
			return fmt.Sprintf(`read on with %s {"reference": "%s", "from": %d}`, OutputToolName, cut.Reference, cut.Kept)
		}
	}
	return "the rest is kept under the reference " + cut.Reference
}

// ownHint is what the program says. A panic in it must not change what becomes of the call.
func (b *batch) ownHint(cut tool.Cut) (hint string) {
	defer func() {
		if value := recover(); value != nil {
			b.executor.log.Error("hint panicked", "reference", cut.Reference, "error", fmt.Sprint(value))
		}
	}()
	return b.executor.options.Output.Hint(cut)
}

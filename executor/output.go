package executor

import (
	"fmt"

	"github.com/caisson-run/caisson/executor/internal/output"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// OutputTool returns a tool with which a model reads the rest of a result that was cut, page by
// page. Register it where the executor finds its tools:
//
//	pages, err := executor.OutputTool()
//	err = tools.Register("", pages)
//
// A session can read its own results only. OutputTool fails only if this package has a bug.
func OutputTool() (registry.Tool, error) {
	pages, err := output.NewTool()
	if err != nil {
		return nil, fmt.Errorf("executor: %s: %w", output.ToolName, err)
	}
	return pages, nil
}

// mark returns the note that replaces the missing text of a part that was cut.
func (b *batch) mark(cut tool.Cut) string {
	text := fmt.Sprintf("[%s cut: %d of %d bytes shown", cut.Part, cut.Kept, cut.Bytes)
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
	if entry, ok, _ := lookUp(b.executor.resolver, output.ToolName); ok && b.allows(entry.Name) {
		if _, ours := entry.Tool.(output.Tool); ours {
			return fmt.Sprintf(`read on with %s {"reference": "%s", "from": %d}`, output.ToolName, cut.Reference, cut.Kept)
		}
	}
	return "the rest is kept under the reference " + cut.Reference
}

// ownHint calls the program's hint. A panic in it must not affect the call.
func (b *batch) ownHint(cut tool.Cut) (hint string) {
	defer func() {
		if value := recover(); value != nil {
			b.executor.log.Error("hint panicked", "reference", cut.Reference, "error", fmt.Sprint(value))
		}
	}()
	return b.executor.options.Output.Hint(cut)
}

// shorten cuts the result of a model's call to its share, and keeps the cut parts whole in the session. Results of
// nested calls are bounded by their tools' own limits.
func (b *batch) shorten(c *call) {
	c.whole = output.Valid(c.record.Result)
	c.record.Result = c.whole
	if c.parent != nil || output.Fits(&c.whole, b.share) {
		return
	}
	keep := b.session.cut.Keeper(func(part string) (reference string) {
		if part == "output" {
			return c.record.CallID
		}
		return c.record.CallID + "." + part
	})
	c.record.Result, c.record.Cuts = output.Cut(c.whole, b.share, keep, b.mark)
}

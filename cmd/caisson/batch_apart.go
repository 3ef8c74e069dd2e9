package main

import (
	"fmt"

	"github.com/caisson-run/caisson/internal/folder"
)

// kept is what a command keeps, and what a tool could do to it that can write there.
type kept struct{ what, harm string }

var (
	keptBatch   = kept{"a batch that waits is", "it could change what somebody approves of"}
	keptRecords = kept{"the records of calls are", `it could change what "caisson explain" shows`}
)

// keepsFromTools refuses folders where a tool that is loaded may write: it could change a batch
// before somebody approves of it, have it run twice, or forge records. All tools count, and not only
// those that are called: these may call others, and while a batch waits other batches run.
func (h *host) keepsFromTools(k kept, dirs []string) error {
	for _, dir := range dirs {
		writer, found, err := h.WriterTo(dir, h.operator.context)
		if err != nil {
			return failed(exitUsage, fmt.Sprintf("%s kept in %s, and it cannot be told whether a tool may write there: %v", k.what, dir, folder.Reason(err)))
		}
		if found {
			return failed(exitUsage, fmt.Sprintf("%s kept in %s, and %s may write there (to %s): %s", k.what, dir, writer.Tool, writer.Dir, k.harm),
				"choose folders that no tool may write to: with --state-dir DIR, and with --state FILE where that was given")
		}
	}
	return nil
}

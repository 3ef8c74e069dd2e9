package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/internal/batches"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// canWait refuses calls that may have to wait where they could not be kept meanwhile.
func (o *batchOptions) canWait(ctx context.Context, h *host, calls []tool.Call) error {
	at := slices.IndexFunc(calls, func(call tool.Call) bool {
		entry, ok := h.registry.Get(call.Function.Name)
		return ok && mayWait(entry)
	})
	if at < 0 && o.keep == "" {
		return nil
	}
	folder, err := o.state.batches()
	dirs := folder.Dirs()
	if o.keep != "" {
		dirs = folder.At(o.keep).Dirs()
	}
	if err := h.keepsFromTools(keptBatch, dirs); err != nil {
		return err
	}
	switch {
	case o.keep != "":
		err = folder.At(o.keep).Check()
	case err == nil && folder == "":
		return failed(exitUsage, fmt.Sprintf("calls of %s wait for the client or for approval, and the batch is kept nowhere", calls[at].Function.Name),
			"name a file for it with --state FILE")
	case err == nil:
		err = folder.Check()
	}
	if err != nil {
		return failed(exitUsage, err.Error(), "name another file for a batch that waits with --state FILE")
	}
	return ctx.Err()
}

// mayWait reports whether a call of the tool may wait before it ends.
func mayWait(entry registry.Entry) bool {
	return entry.Manifest.Execution == manifests.Client || entry.Asks() != ""
}

// place returns where the batch is kept while it waits.
func (o *batchOptions) place(id string) (*batches.Place, error) {
	folder, err := o.state.batches()
	if o.keep != "" {
		return folder.At(o.keep), nil
	}
	if err != nil {
		return nil, err
	}
	return folder.New(id)
}

// kept returns the place of the batch that --resume names.
func (o *batchOptions) kept() (*batches.Place, error) {
	folder, err := o.state.batches()
	if !batches.IsID(o.resumed) {
		return folder.At(o.resumed), nil
	}
	if err != nil {
		return nil, err
	}
	if folder == "" {
		return nil, errors.New(`--state-dir "" has no batches: --resume must name the FILE`)
	}
	return folder.Find(o.resumed)
}

// resumeCommand returns the command that goes on with a batch.
func (o *batchOptions) resumeCommand(waiting done) string {
	words := []string{"caisson", "batch", "--resume", waiting.ID}
	switch {
	case batches.IsID(o.keep):
		words[3] = quoted("." + string(filepath.Separator) + o.keep)
	case o.keep != "":
		words[3] = quoted(o.keep)
	case o.resumed != "" && !batches.IsID(o.resumed):
		words[3] = quoted(o.resumed)
	}
	outputs := false
	for _, action := range waiting.Pending {
		if action.Type == tool.NeedsApproval {
			words = append(words, "--approve", action.CallID+"@"+action.Fingerprint[:leastFingerprint])
		} else {
			outputs = true
		}
	}
	if outputs {
		words = append(words, "OUTPUTS")
	}
	return strings.Join(append(words, o.again...), " ")
}

// ofOneRun are the flags that are not given again where a batch goes on.
var ofOneRun = []string{"dialect", "state", "resume", "approve", "refuse"}

// flagsOf returns the flags of a command line that hold for its later ones, too, as a shell takes
// them. The command has parsed the line, so that each flag is known and has its value.
func flagsOf(command *cobra.Command, args []string) []string {
	_, rest, err := command.Root().Find(args)
	if err != nil {
		return nil
	}
	var words []string
	for len(rest) > 0 && rest[0] != "--" {
		text, isFlag := strings.CutPrefix(rest[0], "--")
		rest = rest[1:]
		name, value, given := strings.Cut(text, "=")
		flag := command.Flags().Lookup(name)
		if !isFlag || flag == nil {
			continue
		}
		alone := flag.NoOptDefVal != ""
		if !given && !alone && len(rest) > 0 {
			value, rest = rest[0], rest[1:]
		}
		switch {
		case slices.Contains(ofOneRun, name):
		case alone && given:
			words = append(words, "--"+name+"="+quoted(value))
		case alone:
			words = append(words, "--"+name)
		default:
			words = append(words, "--"+name, quoted(value))
		}
	}
	return words
}

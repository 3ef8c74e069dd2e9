package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/check"
	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/internal/view"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

func (h *host) failureOf(record tool.Record) *failure {
	kind := record.Result.Kind
	code, _ := exitCode(kind)
	name := record.Function.Name
	printed := ""
	if !h.options.quiet && !h.options.json {
		printed = view.PrintedLog(record.Log, h.options.verbose)
	}
	text := name + ": " + view.Failure(record.Result, printed)
	if found, ok := h.runaways.of(record.CallID); ok {
		return failed(code, text, reportHint(found))
	}
	switch kind {
	case tool.Internal:
		return h.internalFailure(record)
	case tool.UnknownTool:
		return failed(code, record.Result.Error, h.whereTools())
	case tool.InvalidArguments:
		return failed(code, text, h.parametersHint(name))
	case tool.Denied:
		return failed(code, text, h.denialHints(name, record.Denials)...)
	case tool.Deadline, tool.Memory, tool.Output, tool.Fuel:
		return failed(code, text, h.limitHints(record)...)
	}
	return failed(code, text, append(alsoDenied(record.Denials), fullHints(record.HostCalls)...)...)
}

// fullHints names the limits that left no space for the tool's files.
func fullHints(calls []tool.HostCall) (hints []string) {
	for _, c := range calls {
		if limit, full := strings.CutPrefix(c.Status, errno.NoSpace.Error()+": "); full {
			hints = append(hints, fmt.Sprintf("there was no space left for %s: %s", c.Target, limit))
		}
	}
	return hints[:min(len(hints), 3)]
}

// alsoDenied describes the last denial that may matter to a failure with another reason, and the lacking secrets.
func alsoDenied(denials []tool.Denial) []string {
	var hints []string
	for _, d := range denials {
		if d.Note && d.Permission == secretPermission {
			hints = append(hints, fmt.Sprintf("it went on without the secret %s: %s", d.Value, d.Rule))
		}
	}
	for _, d := range slices.Backward(denials) {
		if !d.Note {
			return append(hints, fmt.Sprintf("it was also denied %s %s: %s", d.Permission, d.Value, d.Rule))
		}
	}
	return hints
}

// nestedHints explains failed calls that a tool made, which may have caused the tool's own failure.
func (h *host) nestedHints() []string {
	var hints []string
	for _, made := range h.observer.failed {
		name := made.Function.Name
		switch made.Result.Kind {
		case tool.Internal:
			for _, m := range h.internalFailure(made).messages {
				hints = append(append(hints, "a call that it made failed: "+m.text), m.hints...)
			}
		case tool.UnknownTool:
			hints = append(hints, "it called "+name+", which failed: "+view.Failure(made.Result, ""), "load it with --tools DIR")
		default:
			hints = append(append(hints, "it called "+name+", which failed: "+view.Failure(made.Result, "")),
				h.denialHints(name, made.Denials)...)
		}
	}
	return hints
}

// internalFailure explains a failure of the host to the operator. A module or a directory is a configuration error.
func (h *host) internalFailure(record tool.Record) *failure {
	name, cause := record.Function.Name, h.observer.causes[record.CallID]
	if cause == nil {
		return failed(exitFailed, name+": "+record.Result.Error, "run the command again with --verbose to see the cause")
	}
	if problem, fix, ok := check.Advice(cause); ok {
		return failed(exitUsage, name+": "+problem, fix)
	}
	text := name + ": " + cause.Error()
	switch mount, ok := errors.AsType[*files.Error](cause); {
	case errors.Is(cause, runtime.ErrModule), errors.Is(cause, runtime.ErrDigest):
		return failed(exitUsage, text, terminal.ToRun("caisson validate "+terminal.Quote(h.fileOf(name))))
	case ok:
		return failed(exitUsage, text,
			fmt.Sprintf("check that the directory granted for %s exists and can be used", mount.Path))
	case errors.Is(cause, syscall.ENOSPC):
		return failed(exitFailed, text, spaceHint)
	}
	return failed(exitFailed, text)
}

func (h *host) parametersHint(name string) string {
	return terminal.ToRun(h.inspectCommand(name, sourceFlagNames)) + " to see its parameters"
}

func (h *host) fileOf(name string) string {
	if entry, ok := h.registry.Get(name); ok {
		return entry.Manifest.File
	}
	return ""
}

var limitValues = map[tool.Kind]func(runtime.Limits) int64{
	tool.Deadline: func(l runtime.Limits) int64 { return int64(l.Timeout) },
	tool.Memory:   func(l runtime.Limits) int64 { return int64(l.Memory) },
	tool.Fuel:     func(l runtime.Limits) int64 { return l.Fuel },
}

// limitHints names the lowest limit, which is the one to raise: that of the named profile, the manifest or the flag.
func (h *host) limitHints(record tool.Record) []string {
	name, kind := record.Function.Name, record.Result.Kind
	entry, _ := h.registry.Get(name)
	t, ok := entry.Tool.(*runtime.Tool)
	if !ok {
		return nil
	}
	limit, asked := view.Limits[kind], entry.Manifest.Limits
	if value, ok := limitValues[kind]; ok {
		if hint := profileHint(value, entry.Manifest.Behavior.Profile, h.observer.profiles[record.CallID], t); hint != "" {
			return []string{hint}
		}
		if value(runtime.Limits{Timeout: asked.Timeout, Memory: asked.Memory, Fuel: asked.Fuel}) != value(t.Limits()) {
			return []string{"raise it with " + limit.Flag}
		}
	}
	return []string{limit.Raise(entry.Manifest.File, placeIn(entry.Manifest, limit.Key))}
}

// profileHint names the profiles that allow more, if the profile that an argument names limits the call.
func profileHint(value func(runtime.Limits) int64, argument, profile string, t *runtime.Tool) string {
	profiles := t.ProfileLimits()
	if profile == "" || !lower(value(profiles[profile]), value(t.Limits())) {
		return ""
	}
	var more []string
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		if lower(value(profiles[profile]), value(profiles[name])) {
			more = append(more, name)
		}
	}
	hint := fmt.Sprintf(
		"the argument %s names the profile %s, which allows less than the flags and the policy: leave it out", argument,
		profile)
	if len(more) > 0 {
		hint += ", or name " + strings.Join(more, " or ")
	}
	return hint
}

// lower reports whether a limit is lower than another one. Zero means unlimited.
func lower(limit, than int64) bool { return limit != 0 && (than == 0 || limit < than) }

// placeIn returns a manifest's file, with the line of a key if it has the key.
func placeIn(m *manifests.Manifest, key string) string {
	if line := m.Line(key); line > 0 {
		return fmt.Sprintf("%s:%d", m.File, line)
	}
	return m.File
}

// availability is the permission in the receipt of a tool that lacks a required setting.
const availability = "availability"

const callPermission = "tools"

const secretPermission = "secrets"

// withheld returns the grants of a tool that have no effect, such as a secret that is not set, and how to see the rest.
func (h *host) withheld(name string) []string {
	var hints []string
	if entry, ok := h.registry.Get(name); ok {
		if h.lacksInterpreter(entry.Manifest) {
			return []string{terminal.ToRun("caisson interpreters install " + string(entry.Manifest.Module.Language))}
		}
		if t, ok := entry.Tool.(*runtime.Tool); ok {
			for _, d := range t.Decisions() {
				if d.Granted != "" && d.Effective == "" {
					hints = append(hints, fmt.Sprintf("%s: %s, but %s", d.Permission, d.Granted, d.Reason))
				}
			}
		}
	}
	hints = append(hints, h.unappliedHints()...)
	return append(hints, terminal.ToRun(h.inspectCommand(name, toolFlagNames))+
		" to see what it requests and what would allow it")
}

// denialHints says what would allow the last denial, which the error names.
func (h *host) denialHints(name string, denials []tool.Denial) []string {
	if len(denials) == 0 {
		return nil
	}
	last := denials[len(denials)-1]
	switch last.Permission {
	case availability:
		return append(h.withheld(name), h.operator.unusedFile()...)
	case view.ApprovalPermission:
		return h.approvalHints(name)
	}
	if _, found := h.registry.Get(last.Value); last.Permission == callPermission && !found {
		return []string{fmt.Sprintf("there is no tool %s; load it with --tools DIR", last.Value)}
	}
	remedy, note := h.operator.contextNote(last, h.fileOf(name))
	hints := append(remedy.Hints("the manifest of "+name, h.operator.file()), note...)
	others := -1
	for _, d := range denials {
		if !d.Note {
			others++
		}
	}
	if others > 0 {
		hints = append(hints, terminal.Count(others, "more request")+" were denied; --json shows all")
	}
	if len(hints) > 0 {
		hints = append(hints, h.unappliedHints()...)
	}
	return append(hints, h.operator.unusedFile()...)
}

// approvalHints says how to let calls of a tool run that were not approved.
func (h *host) approvalHints(name string) []string {
	entry, ok := h.registry.Get(name)
	if !ok || h.operator.asks(entry.Manifest) {
		return nil
	}
	return []string{
		"run all of its calls without approval with --approve-tool " + entry.Name,
		fmt.Sprintf("or in %s: approve: [{tools: [%s]}]", h.operator.file(), entry.Name),
	}
}

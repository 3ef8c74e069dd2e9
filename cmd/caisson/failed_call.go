package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/runtime/extism"
	"github.com/caisson-run/caisson/tool"
)

// failureOf returns the failure for a failed call, with hints.
func (h *host) failureOf(record tool.Record) *failure {
	kind := record.Result.Kind
	code, _ := exitCode(kind)
	name := record.Function.Name
	why := whyFailed(record.Result)
	if !h.options.quiet && !h.options.json {
		why = withoutLog(why, printedLog(record.Log, h.options.verbose))
	}
	text := name + ": " + why
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
		if limit, full := strings.CutPrefix(c.Status, files.ErrNoSpace.Error()+": "); full {
			hints = append(hints, fmt.Sprintf("there was no space left for %s: %s", c.Target, limit))
		}
	}
	return hints[:min(len(hints), 3)]
}

// theToolSays is before a tool's own words, so that they cannot pass for the host's.
const theToolSays = "the tool says: "

// whyFailed returns why a call failed. The reason of a tool that failed is in its own words, except for
// those that begin with "the tool", which are the host's. The other kinds of failures are the host's.
func whyFailed(result tool.Result) string {
	if result.Kind == tool.ToolFailed && !strings.HasPrefix(result.Error, "the tool") {
		return theToolSays + result.Error
	}
	return result.Error
}

// withoutLog returns the text of a failure without the tool's log, if that is quoted at its end: "denied:
// …; the tool exited with code 1: LOG". A long log is quoted from "… " on.
func withoutLog(text, log string) string {
	isHosts := (strings.HasPrefix(text, "the tool ") || strings.HasPrefix(text, "denied: ")) && !strings.HasPrefix(text, theToolSays)
	if log == "" || !isHosts { // only the host's own words quote it
		return text
	}
	for i := range text {
		words, found := strings.CutPrefix(text[i:], ":")
		if !found {
			continue
		}
		words, isEnd := strings.CutPrefix(strings.TrimSpace(words), "… ")
		if words == log || isEnd && words != "" && strings.HasSuffix(log, words) {
			return text[:i]
		}
	}
	return text
}

// alsoDenied describes the last denial that may matter to a failure that has another reason, and the secrets that
// requests lacked.
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

// nestedHints explains failed calls that a tool made: what would allow denied requests, which tool
// was missing, or why the host failed. They may have caused the tool's own failure.
func (h *host) nestedHints() []string {
	var hints []string
	for _, made := range h.witness.failed {
		name := made.Function.Name
		switch made.Result.Kind {
		case tool.Internal:
			for _, m := range h.internalFailure(made).messages {
				hints = append(append(hints, "a call that it made failed: "+m.text), m.hints...)
			}
		case tool.UnknownTool:
			hints = append(hints, "it called "+name+", which failed: "+whyFailed(made.Result), "load it with --tools DIR")
		default:
			hints = append(append(hints, "it called "+name+", which failed: "+whyFailed(made.Result)), h.denialHints(name, made.Denials)...)
		}
	}
	return hints
}

// withHints adds hints to the failure's last message.
func (f *failure) withHints(hints ...string) *failure {
	m := &f.messages[len(f.messages)-1]
	m.hints = append(m.hints, hints...)
	return f
}

// internalFailure explains a failure of the host to the operator. A failure caused by a module or a
// directory is a configuration error.
func (h *host) internalFailure(record tool.Record) *failure {
	name, cause := record.Function.Name, h.witness.causes[record.CallID]
	if cause == nil {
		return failed(exitFailed, name+": "+record.Result.Error, "run the command again with --verbose to see the cause")
	}
	if problem, fix, ok := problemOf(cause); ok {
		return failed(exitUsage, name+": "+problem, fix)
	}
	text := name + ": " + cause.Error()
	switch mount, ok := errors.AsType[*files.Error](cause); {
	case errors.Is(cause, runtime.ErrModule), errors.Is(cause, runtime.ErrDigest):
		return failed(exitUsage, text, toRun("caisson validate "+quoted(h.fileOf(name))))
	case ok:
		return failed(exitUsage, text, fmt.Sprintf("check that the directory granted for %s exists and can be used", mount.Path))
	case errors.Is(cause, syscall.ENOSPC):
		return failed(exitFailed, text, spaceHint)
	}
	return failed(exitFailed, text)
}

// parametersHint says how to see the parameters of a tool.
func (h *host) parametersHint(name string) string {
	return toRun(h.inspectCommand(name, sourceFlagNames)) + " to see its parameters"
}

func (h *host) fileOf(name string) string {
	if entry, ok := h.registry.Get(name); ok {
		return entry.Manifest.File
	}
	return ""
}

// whereTools says what to do if a tool was not found.
func (h *host) whereTools() string {
	if len(h.registry.List()) == 0 {
		return "there is no tool in " + strings.Join(h.sources, ", ") + "; " + cmp.Or(h.pluginsHint(), "name a folder that has a tool.yaml or NAME.tool.yaml with --tools DIR")
	}
	return toRun(h.options.again("caisson list", sourceFlagNames...)) + " to see the tools"
}

// pluginsHint says how to name a manifest of Extism that is in one of the sources, or "".
func (h *host) pluginsHint() string {
	for _, source := range h.sources {
		if hint := namedThemselves("--tools ", source); hint != "" {
			return hint
		}
	}
	return ""
}

// limit is a limit that a call can exceed: its key in manifests, its member in those of Extism, the flag that
// sets it, and its value. All but the key may be empty.
type limit struct {
	key, member, flag string
	value             func(runtime.Limits) int64
}

var limits = map[tool.Kind]limit{
	tool.Deadline: {"limits.timeout", "timeout_ms", "--timeout DURATION", func(l runtime.Limits) int64 { return int64(l.Timeout) }},
	tool.Memory:   {"limits.memory", "memory.max_pages", "--memory SIZE", func(l runtime.Limits) int64 { return int64(l.Memory) }},
	tool.Fuel:     {"limits.fuel", "", "--fuel N", func(l runtime.Limits) int64 { return l.Fuel }},
	tool.Output:   {"limits.output", "", "", nil},
}

// raise says to raise the limit in a manifest, which is that of a file, at a place.
func (l limit) raise(file, place string) string {
	switch {
	case !extism.IsManifest(file):
		return "raise " + l.key + " in " + place
	case l.member == "":
		return "raise " + l.key + " in a manifest of Caisson: those of Extism, such as " + place + ", cannot have it"
	}
	return "raise " + l.member + " in " + place
}

// limitHints names the limit to raise: that of the profile that the call names if it is lower than the others, or
// the manifest's if it is lower than the flag's, or the flag's.
func (h *host) limitHints(record tool.Record) []string {
	name, kind := record.Function.Name, record.Result.Kind
	entry, ok := h.registry.Get(name)
	if !ok {
		return nil
	}
	t, ok := entry.Tool.(*runtime.Tool)
	if !ok {
		return nil
	}
	l := limits[kind]
	if hint := l.profileHint(entry.Manifest.Behavior.Profile, h.witness.profiles[record.CallID], t); hint != "" {
		return []string{hint}
	}
	asked := entry.Manifest.Limits
	if own := (runtime.Limits{Timeout: asked.Timeout, Memory: asked.Memory, Fuel: asked.Fuel}); l.value != nil && l.value(own) != l.value(t.Limits()) {
		return []string{"raise it with " + l.flag}
	}
	return []string{l.raise(entry.Manifest.File, placeIn(entry.Manifest, l.key))}
}

// profileHint says which profile to name if the one that an argument names is what limits the call, or "" if it
// is not.
func (l limit) profileHint(argument, profile string, t *runtime.Tool) string {
	profiles := t.ProfileLimits()
	if l.value == nil || profile == "" || !lower(l.value(profiles[profile]), l.value(t.Limits())) {
		return ""
	}
	var more []string
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		if lower(l.value(profiles[profile]), l.value(profiles[name])) {
			more = append(more, name)
		}
	}
	hint := fmt.Sprintf("the argument %s names the profile %s, which allows less than the flags and the policy: leave it out", argument, profile)
	if len(more) > 0 {
		hint += ", or name " + strings.Join(more, " or ")
	}
	return hint
}

// lower reports whether a limit is lower than another one. Zero is no limit.
func lower(limit, than int64) bool { return limit != 0 && (than == 0 || limit < than) }

// placeIn returns a manifest's file, with the line of a key if it has the key.
func placeIn(m *manifests.Manifest, key string) string {
	if line := m.Line(key); line > 0 {
		return fmt.Sprintf("%s:%d", m.File, line)
	}
	return m.File
}

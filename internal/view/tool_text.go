package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// Text describes the tool for people. policy is the file name of the operator's policy, or of the one to create.
func (t Tool) Text(policy string) string {
	var b strings.Builder
	title := t.Name
	if t.Label != "" {
		title += ": " + t.Label
	}
	b.WriteString(terminal.EscapeLine(title) + "\n")
	for line := range strings.SplitSeq(strings.TrimSpace(t.Description), "\n") {
		b.WriteString("  " + line + "\n")
	}
	b.WriteString("\n")
	if t.Summary != t.Description {
		terminal.Field(&b, "for people", t.Summary)
	}
	terminal.Field(&b, "manifest", t.File)
	for _, f := range [...]struct{ name, text string }{
		{"version", t.Version}, {"category", t.Category}, {"notes", t.behaviour()},
		{"deprecated", cmp.Or(t.Deprecated, &manifests.Deprecated{}).Message},
	} {
		if f.text != "" {
			terminal.Field(&b, f.name, f.text)
		}
	}
	terminal.Field(&b, "requires", texts(t.Requires, requirement.line)...)
	terminal.Field(&b, "keeps out", texts(t.Shadowed, registry.Origin.String)...)
	terminal.Field(&b, "approval", t.approval())
	if t.Execution == manifests.ExecutionClient {
		terminal.Field(&b, "run by",
			"the client: \"caisson batch\" prints the calls, and accepts their outputs with --resume")
	} else {
		terminal.Field(&b, "module", t.Module.lines()...)
		terminal.Field(&b, "profile", t.Profile)
		terminal.Field(&b, "limits", t.Limits.lines()...)
		terminal.Field(&b, "answers", t.Reuse.line())
		terminal.Field(&b, "isolation", t.Isolation.lines()...)
		terminal.Field(&b, "permissions", decisionLines(t.Permissions, t.File, policy)...)
	}
	if len(t.Format) > 0 {
		terminal.Field(&b, "format", "of its text:")
		b.WriteString(indented(t.Format))
	}
	terminal.Field(&b, "parameters", "as a model sees them:")
	b.WriteString(indented(t.Parameters))
	aliases := slices.Sorted(maps.Keys(t.ParameterAliases))
	terminal.Field(&b, "also taken",
		texts(aliases, func(alias string) string { return alias + " for " + t.ParameterAliases[alias] })...)
	return b.String()
}

// approval says whether calls require approval, and why.
func (t Tool) approval() string {
	switch {
	case t.Execution == manifests.ExecutionClient:
		return "not needed: the client sees each call before it runs it"
	case t.Asks != "":
		return "required: " + t.Asks
	case t.Destructive && !slices.ContainsFunc(t.Permissions, func(d tool.Decision) bool { return d.Effective != "" }) &&
		len(t.Permissions) > 0:
		return "not needed: the tool gets none of the permissions that it asks for, so its calls can destroy nothing"
	case t.Destructive:
		return "not needed, although the tool is destructive: the operator has approved it"
	}
	return "not needed"
}

func (t Tool) behaviour() string {
	notes := notesOn(t.Listing)
	if t.Idempotent {
		notes = append(notes, "idempotent")
	}
	if t.Destructive {
		notes = append(notes, "destructive")
	}
	return strings.Join(notes, "; ")
}

func (m toolModule) lines() []string {
	if m.Problem != "" {
		return []string{m.Path, "cannot be used, see below"}
	}
	pin := "not pinned by the manifest"
	if m.Pinned {
		pin = "pinned by the manifest"
	}
	lines := []string{
		fmt.Sprintf("%s, %d bytes", m.Path, m.Bytes),
		fmt.Sprintf("sha256 %s, %s", m.SHA256, pin),
		"starts with " + manifests.Bytes(m.MemoryBytes).String() + " of memory",
		importLine(m.Imports),
	}
	if len(m.Libraries) > 0 {
		lines[0] += " with its libraries"
		lines[1] = fmt.Sprintf("sha256 %s of all of it, %s", m.SHA256, pin)
		for _, l := range m.Libraries {
			line := fmt.Sprintf("its library %s is %s, %d bytes, sha256 %s", l.Name, l.Path, l.Bytes, l.SHA256)
			if l.Unused {
				line += ", and nothing imports from it"
			}
			lines = append(lines, line)
		}
	}
	if m.Interpreter != "" {
		lines = []string{
			fmt.Sprintf("%s, %d bytes with its packages and its driver, run by %s", m.Path, m.Bytes, m.Interpreter),
			fmt.Sprintf("sha256 %s of all of it, %s", m.SHA256, pin),
		}
	}
	if len(m.SuccessCodes) > 1 {
		lines = append(lines, "succeeds with exit codes "+strings.Trim(fmt.Sprint(m.SuccessCodes), "[]"))
	}
	if m.StderrPrivate {
		lines = append(lines, "keeps its standard error from models")
	}
	if len(m.SeededGenerators) > 0 {
		lines = append(lines, "links "+strings.Join(m.SeededGenerators, ", ")+", which a snapshot may repeat")
	}
	if len(m.Unused) > 0 {
		lines = append(lines, "has no import to use "+strings.Join(m.Unused, ", "))
	}
	return lines
}

func (r requirement) line() string {
	line := strings.Join(r.AnyOf, " or ")
	if !r.Requested {
		line += ", which only a program that embeds Caisson can set: the manifest requests no variable or secret of this name"
	}
	return line
}

// line says how long the answer to a call may be reused.
func (r reuse) line() string {
	if r.Seconds == 0 {
		return "every call runs: " + r.Reason
	}
	return fmt.Sprintf("reused for %s for identical calls, until a call may have changed something: %s",
		time.Duration(r.Seconds*float64(time.Second)), r.Reason)
}

func importLine(imports []string) string {
	if len(imports) == 0 {
		return "imports nothing"
	}
	line, last := "imports", ""
	for _, name := range imports {
		module, function, _ := strings.Cut(name, ".")
		if module != last {
			line += " " + module + ":"
			last = module
		}
		line += " " + function
	}
	return line
}

func (l callLimits) lines() []string {
	timeout := time.Duration(l.TimeoutSeconds * float64(time.Second))
	lines := []string{
		fmt.Sprintf("timeout %s, memory %s, output %s, log %s", timeout, manifests.Bytes(l.MemoryBytes),
			manifests.Bytes(l.OutputBytes), manifests.Bytes(l.StderrBytes)),
		fmt.Sprintf("open files %d, disk %s, requests %d with %s", l.OpenFiles, manifests.Bytes(l.DiskBytes), l.HTTPCalls,
			manifests.Bytes(l.HTTPBytes)),
	}
	if l.Fuel > 0 {
		lines = append(lines, fmt.Sprintf("fuel %d instructions", l.Fuel))
	}
	return lines
}

func (i *isolation) lines() []string {
	if i == nil {
		return []string{"fresh for every call"}
	}
	cost := fmt.Sprintf("%s and %d instructions",
		time.Duration(i.StartMilliseconds*float64(time.Millisecond)).Round(10*time.Microsecond), i.StartFuel)
	lines := []string{"fresh for every call: each starts the program again", "reason: " + i.Reason}
	switch {
	case i.NoStart && i.NewInstanceReason == "":
		lines = []string{"fresh for every call: memory and globals are set back to what the module begins with", i.Reason}
	case i.NoStart:
		lines = []string{"fresh for every call: " + i.Reason}
	case i.Resumed:
		lines = []string{
			"fresh for every call: each resumes the program where it first reads its input",
			"each call saves the start-up, " + cost,
		}
		if i.copied {
			lines[0] = "fresh for every call: each gets a copy of the memory that starting the plug-in has left"
		}
	case i.StartWouldGain:
		lines = append(lines, "snapshot: start in the manifest would save each call the start-up, "+cost)
	}
	if i.NewInstanceReason != "" {
		lines = append(lines, "each call has a new instance: "+i.NewInstanceReason)
	}
	return lines
}

// decisionLines describes the decisions on permissions. file has the manifest, and policy is as in text.
func decisionLines(decisions []tool.Decision, file, policy string) []string {
	if len(decisions) == 0 {
		return []string{"none requested"}
	}
	var lines []string
	for _, d := range decisions {
		lines = append(lines, fmt.Sprintf("%s: requests %s", d.Permission, d.Requested),
			"  granted: "+cmp.Or(d.Granted, "nothing"),
			"  gets: "+cmp.Or(d.Effective, "nothing"))
		if !strings.HasPrefix(d.Reason, "granted") {
			lines = append(lines, "  because: "+d.Reason)
		}
		for _, hint := range RemedyOf(d.Allow, file).Hints("the manifest", policy) {
			lines = append(lines, "  "+hint)
		}
	}
	return lines
}

func indented(document json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, document, "  ", "  "); err != nil {
		return "  " + string(document) + "\n"
	}
	return "  " + b.String() + "\n"
}

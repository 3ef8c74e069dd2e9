package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// field writes a named line and indents the lines that follow it.
func field(b *strings.Builder, name string, lines ...string) {
	for i, line := range lines {
		if i > 0 {
			name = ""
		}
		fmt.Fprintf(b, "%-13s%s\n", name, sanitiseLine(line))
	}
}

// text returns the tool as text for people. policy is the file name of the operator's policy, or of
// the one to create.
func (t inspected) text(policy string) string {
	var b strings.Builder
	title := t.Name
	if t.Label != "" {
		title += ": " + t.Label
	}
	b.WriteString(sanitiseLine(title) + "\n")
	for line := range strings.SplitSeq(strings.TrimSpace(t.Description), "\n") {
		b.WriteString("  " + line + "\n")
	}
	b.WriteString("\n")
	if t.Summary != t.Description {
		field(&b, "for people", t.Summary)
	}
	field(&b, "manifest", t.File)
	if t.Version != "" {
		field(&b, "version", t.Version)
	}
	if t.Category != "" {
		field(&b, "category", t.Category)
	}
	if notes := t.behaviour(); notes != "" {
		field(&b, "notes", notes)
	}
	if t.Deprecated != nil && t.Deprecated.Message != "" {
		field(&b, "deprecated", t.Deprecated.Message)
	}
	var required []string
	for _, r := range t.Requires {
		required = append(required, r.line())
	}
	field(&b, "requires", required...)
	var shadowed []string
	for _, o := range t.Shadowed {
		shadowed = append(shadowed, o.String())
	}
	field(&b, "keeps out", shadowed...)
	field(&b, "approval", t.approval())
	if t.Execution == manifests.ExecutionClient {
		field(&b, "run by", "the client: \"caisson batch\" prints the calls, and accepts their outputs with --resume")
	} else {
		field(&b, "module", t.Module.lines()...)
		field(&b, "profile", t.Profile)
		field(&b, "limits", t.Limits.lines()...)
		field(&b, "answers", t.Reuse.line())
		field(&b, "isolation", t.Isolation.lines()...)
		field(&b, "permissions", decisionLines(t.Permissions, t.File, policy)...)
	}
	if len(t.Format) > 0 {
		field(&b, "format", "of its text:")
		b.WriteString(indented(t.Format))
	}
	field(&b, "parameters", "as a model sees them:")
	b.WriteString(indented(t.Parameters))
	var aliases []string
	for _, alias := range slices.Sorted(maps.Keys(t.ParameterAliases)) {
		aliases = append(aliases, alias+" for "+t.ParameterAliases[alias])
	}
	field(&b, "also taken", aliases...)
	return b.String()
}

// approval says whether calls require approval, and why.
func (t inspected) approval() string {
	switch {
	case t.Execution == manifests.ExecutionClient:
		return "not needed: the client sees each call before it runs it"
	case t.Asks != "":
		return "required: " + t.Asks
	case t.Destructive && !slices.ContainsFunc(t.Permissions, func(d tool.Decision) bool { return d.Effective != "" }) && len(t.Permissions) > 0:
		return "not needed: the tool gets none of the permissions that it asks for, so its calls can destroy nothing"
	case t.Destructive:
		return "not needed, although the tool is destructive: the operator has approved it"
	}
	return "not needed"
}

func (t inspected) behaviour() string {
	notes := notesOn(t.Listing)
	if t.Idempotent {
		notes = append(notes, "idempotent")
	}
	if t.Destructive {
		notes = append(notes, "destructive")
	}
	return strings.Join(notes, "; ")
}

func (m module) lines() []string {
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

// line says how long the answer to a call may be reused.
func (r reuse) line() string {
	if r.Seconds == 0 {
		return "every call runs: " + r.Reason
	}
	return fmt.Sprintf("reused for %s for identical calls, until a call may have changed something: %s", time.Duration(r.Seconds*float64(time.Second)), r.Reason)
}

// importLine lists the imported modules with their functions.
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
		fmt.Sprintf("timeout %s, memory %s, output %s, log %s", timeout, manifests.Bytes(l.MemoryBytes), manifests.Bytes(l.OutputBytes), manifests.Bytes(l.StderrBytes)),
		fmt.Sprintf("open files %d, disk %s, requests %d with %s", l.OpenFiles, manifests.Bytes(l.DiskBytes), l.HTTPCalls, manifests.Bytes(l.HTTPBytes)),
	}
	if l.Fuel > 0 {
		lines = append(lines, fmt.Sprintf("fuel %d instructions", l.Fuel))
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
		for _, hint := range remedyOf(d.Allow, file).hints("the manifest", policy) {
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

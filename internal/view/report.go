// Package view describes tools, calls and manifests as the command prints them: as JSON, and as text for people. Its
// callers pass the described values; it runs nothing.
package view

import (
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/internal/check"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/manifests"
)

// Report describes what a check found for people: problems and warnings, and unless quiet, translations and counts.
func Report(r check.Report, quiet bool) string {
	var b strings.Builder
	broken := map[string]bool{}
	for _, p := range r.Problems {
		broken[p.File] = true
		b.WriteString(problemLines(p, ""))
	}
	for _, p := range r.Warnings {
		b.WriteString(problemLines(p, "warning: "))
	}
	if quiet {
		return b.String()
	}
	for _, t := range r.Translated {
		b.WriteString(translation(t))
	}
	var counts []string
	if len(r.Problems) > 0 {
		counts = append(counts, terminal.Count(len(r.Problems), "problem")+" in "+terminal.Count(len(broken), "file"))
	} else if r.Valid {
		if r.Files > 0 || r.Policies == 0 {
			counts = append(counts, valid(r.Files, "manifest", "manifests"))
		}
		if r.Policies > 0 {
			counts = append(counts, valid(r.Policies, "policy", "policies"))
		}
	}
	if n := len(r.Warnings); n > 0 && !r.Valid && len(r.Problems) == 0 {
		counts = append(counts, terminal.Count(n, "warning")+", and --strict allows none")
	} else if n > 0 {
		counts = append(counts, terminal.Count(n, "warning"))
	}
	return b.String() + strings.Join(counts, ", ") + "\n"
}

func translation(t check.Translation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: a manifest of Extism, of which Caisson makes %s\n", terminal.EscapeLine(t.File),
		strings.Join(t.Tools, ", "))
	for _, m := range t.Members {
		fmt.Fprintf(&b, "  %s\n", terminal.EscapeLine(m.Member+" is "+m.Is))
	}
	return b.String()
}

func valid(n int, one, many string) string {
	if n == 1 {
		return "1 " + one + " is valid"
	}
	return fmt.Sprintf("%d %s are valid", n, many)
}

// problemLines returns a problem, with a prefix before its message, and its fix.
func problemLines(p manifests.Problem, prefix string) string {
	return terminal.EscapeLine(Place(p)+prefix+p.Message) + "\n  fix: " + terminal.EscapeLine(p.Fix) + "\n"
}

// Place returns the place of a problem as a prefix for its message.
func Place(p manifests.Problem) string {
	place := fmt.Sprintf("%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Path != "" {
		place += p.Path + ": "
	}
	return place
}

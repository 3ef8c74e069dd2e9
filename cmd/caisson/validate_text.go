package main

import (
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/manifests"
)

// text returns the verdict for people.
func (v verdict) text(quiet bool) string {
	var b strings.Builder
	broken := map[string]bool{}
	for _, p := range v.Problems {
		broken[p.File] = true
		b.WriteString(problemLines(p, ""))
	}
	for _, p := range v.Warnings {
		b.WriteString(problemLines(p, "warning: "))
	}
	if quiet {
		return b.String()
	}
	switch {
	case !v.Valid:
		b.WriteString(count(len(v.Problems), "problem") + " in " + count(len(broken), "file"))
	case v.Policies == 0:
		b.WriteString(valid(v.Files, "manifest", "manifests"))
	case v.Files == 0:
		b.WriteString(valid(v.Policies, "policy", "policies"))
	default:
		b.WriteString(valid(v.Files, "manifest", "manifests") + ", " + valid(v.Policies, "policy", "policies"))
	}
	if n := len(v.Warnings); n > 0 {
		b.WriteString(", " + count(n, "warning"))
	}
	return b.String() + "\n"
}

func valid(n int, one, many string) string {
	if n == 1 {
		return "1 " + one + " is valid"
	}
	return fmt.Sprintf("%d %s are valid", n, many)
}

// problemLines returns a problem, its message behind a prefix, and its fix.
func problemLines(p manifests.Problem, prefix string) string {
	return sanitiseLine(placeOf(p)+prefix+p.Message) + "\n  fix: " + sanitiseLine(p.Fix) + "\n"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

package main

import (
	"context"
	"fmt"

	"github.com/caisson-run/caisson"
)

// shownUnapplied is how many lines a denied call has about what does not apply.
const shownUnapplied = 3

// unapplied returns what the operator says that changes nothing for the loaded tools. Where
// one manifest alone is looked at, nothing can be said about the others.
func (h *host) unapplied() []caisson.Unapplied {
	if h.options.only != "" {
		return nil
	}
	return h.Unapplied()
}

// unappliedLine returns one of it for people.
func unappliedLine(u caisson.Unapplied) string {
	return fmt.Sprintf("%s: %s; %s", u.Origin, u.Text, u.Fix)
}

// unappliedHints returns the first lines of it.
func (h *host) unappliedHints() []string {
	found := h.unapplied()
	var hints []string
	for _, u := range found[:min(len(found), shownUnapplied)] {
		hints = append(hints, unappliedLine(u))
	}
	if more := len(found) - len(hints); more > 0 {
		hints = append(hints, fmt.Sprintf("%d more like these; --verbose shows all", more))
	}
	return hints
}

// noteUnapplied prints it for somebody who looks at tools.
func (h *host) noteUnapplied(env environment) {
	if h.options.quiet {
		return
	}
	for _, u := range h.unapplied() {
		printHint(env.stderr, unappliedLine(u))
	}
}

// logUnapplied logs it for somebody who wants to know all.
func (h *host) logUnapplied(ctx context.Context) {
	if h.logger == nil {
		return
	}
	for _, u := range h.unapplied() {
		h.logger.WarnContext(ctx, "not applied", "at", u.Origin, "reason", u.Text, "fix", u.Fix)
	}
}

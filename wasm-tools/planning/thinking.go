package main

import (
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

// thought is one step of a chain of thoughts. The schema bounds its numbers, which may be written as 2.0.
type thought struct {
	Thought           string   `json:"thought"`
	NextThoughtNeeded bool     `json:"next_thought_needed"`
	ThoughtNumber     float64  `json:"thought_number"`
	TotalThoughts     float64  `json:"total_thoughts"`
	IsRevision        bool     `json:"is_revision"`
	RevisesThought    *float64 `json:"revises_thought"`
	BranchFromThought *float64 `json:"branch_from_thought"`
	BranchID          string   `json:"branch_id"`
	NeedsMoreThoughts bool     `json:"needs_more_thoughts"`
}

// noted is the data of thinking's result.
type noted struct {
	ThoughtNumber     int  `json:"thought_number"`
	TotalThoughts     int  `json:"total_thoughts"`
	NextThoughtNeeded bool `json:"next_thought_needed"`
	// Branches holds the branch that the thought is on, if any: those of earlier thoughts are in earlier results.
	Branches []string `json:"branches"`
	Revises  int      `json:"revises_thought,omitempty"`
	Hints    []string `json:"hints"`
}

// maxBranch bounds a branch's name in the text for the model.
const maxBranch = 64

func think(t thought) (call.Result, error) {
	n := noted{
		ThoughtNumber: int(t.ThoughtNumber), TotalThoughts: max(int(t.TotalThoughts), int(t.ThoughtNumber)),
		NextThoughtNeeded: t.NextThoughtNeeded || t.NeedsMoreThoughts, Branches: []string{}, Hints: []string{},
	}
	if n.NextThoughtNeeded {
		n.TotalThoughts = max(n.TotalThoughts, n.ThoughtNumber+1)
	}
	hint := func(format string, arguments ...any) { n.Hints = append(n.Hints, fmt.Sprintf(format, arguments...)) }
	if strings.TrimSpace(t.Thought) == "" {
		hint("thought is empty; write the reasoning of this step there.")
	}
	about := ""
	switch {
	case t.RevisesThought != nil && *t.RevisesThought >= t.ThoughtNumber:
		hint("revises_thought is %d, which is not before thought %d; name an earlier thought.", int(*t.RevisesThought),
			n.ThoughtNumber)
	case t.RevisesThought != nil:
		n.Revises = int(*t.RevisesThought)
		about += fmt.Sprintf(", revises thought %d", n.Revises)
	case t.IsRevision:
		hint("is_revision is set; name the thought that is reconsidered in revises_thought.")
	}
	branch := plain.Line(t.BranchID, maxBranch)
	switch {
	case t.BranchFromThought != nil && *t.BranchFromThought >= t.ThoughtNumber:
		hint("branch_from_thought is %d, which is not before thought %d; name an earlier thought.", int(*t.BranchFromThought),
			n.ThoughtNumber)
	case t.BranchFromThought != nil && branch == "":
		hint("a branch starts here; give it a name in branch_id, and repeat that in its later thoughts.")
	case t.BranchFromThought != nil:
		about += fmt.Sprintf(", branch %s from thought %d", branch, int(*t.BranchFromThought))
	case branch != "":
		about += ", branch " + branch
	}
	if branch != "" {
		n.Branches = append(n.Branches, branch)
	}
	if t.NeedsMoreThoughts && !t.NextThoughtNeeded {
		hint("needs_more_thoughts is set but next_thought_needed is not; the chain goes on.")
	}
	output := fmt.Sprintf("Thought %d of %d%s. ", n.ThoughtNumber, n.TotalThoughts, about)
	if n.NextThoughtNeeded {
		output += fmt.Sprintf("Continue with thought %d.", n.ThoughtNumber+1)
	} else {
		output += "No further thought is needed: act on the conclusion."
	}
	return call.Result{Success: true, Output: withHints(output, n.Hints), Data: n}, nil
}

// withHints adds a line for each hint.
func withHints(output string, hints []string) string {
	for _, hint := range hints {
		output += "\nHint: " + hint
	}
	return output
}

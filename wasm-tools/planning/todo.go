package main

import (
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

// todo is a plan, whole: each call replaces the one before.
type todo struct {
	Task  string `json:"task"`
	Steps []step `json:"steps"`
}

// step is one step of a plan.
type step struct {
	ID          string `json:"id"`
	Description string `json:"description"`
	Status      string `json:"status"`
}

// The states of a step.
const (
	pending    = "pending"
	inProgress = "in_progress"
	completed  = "completed"
)

// planned is the data of todo_write's result.
type planned struct {
	Task   string   `json:"task,omitempty"`
	Steps  []step   `json:"steps"`
	Counts counts   `json:"counts"`
	Hints  []string `json:"hints"`
}

// counts are the numbers of steps, by state.
type counts struct {
	Total      int `json:"total"`
	Pending    int `json:"pending"`
	InProgress int `json:"in_progress"`
	Completed  int `json:"completed"`
}

// maxLine bounds a step in the text for the model, which wrote it and has all of it.
const maxLine = 200

func plan(t todo) (call.Result, error) {
	p := planned{Task: t.Task, Steps: t.Steps, Counts: counts{Total: len(t.Steps)}, Hints: []string{}}
	position := map[string]int{}
	var current []string
	var list strings.Builder
	for i, s := range t.Steps {
		if first, repeated := position[s.ID]; repeated {
			return call.Result{},
				fmt.Errorf("steps[%d].id: %q is the id of steps[%d] too; give each step an id of its own", i, s.ID, first)
		}
		position[s.ID] = i
		if strings.TrimSpace(s.Description) == "" {
			return call.Result{}, fmt.Errorf("steps[%d].description: it is empty; say what the step does", i)
		}
		id, mark := plain.Line(s.ID, maxBranch), " "
		switch s.Status {
		case completed:
			p.Counts.Completed++
			mark = "x"
		case inProgress:
			p.Counts.InProgress++
			mark, current = ">", append(current, id)
		default: // pending, by the schema
			p.Counts.Pending++
		}
		fmt.Fprintf(&list, "\n[%s] %s: %s", mark, id, plain.Line(s.Description, maxLine))
	}
	switch {
	case len(current) > 1:
		p.Hints = append(p.Hints, "the steps "+strings.Join(current, ", ")+" are in progress; work on one at a time.")
	case len(current) == 0 && p.Counts.Pending > 0:
		p.Hints = append(p.Hints, "no step is in progress; set the next one to in_progress when you start it.")
	case p.Counts.Completed == p.Counts.Total:
		p.Hints = append(p.Hints, "all steps are completed; give the result.")
	}
	heading := "Plan"
	if task := plain.Line(t.Task, maxLine); task != "" {
		heading += ": " + task
	}
	output := fmt.Sprintf("%s (%d of %d completed)%s", heading, p.Counts.Completed, p.Counts.Total, list.String())
	return call.Result{Success: true, Output: withHints(output, p.Hints), Data: p}, nil
}

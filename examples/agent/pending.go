package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// handler answers a call that the client runs. What goes wrong with the call is in the result; the
// error is for one that was not answered: put off, or interrupted.
type handler func(ctx context.Context, p *person, action tool.Action) (tool.Result, error)

// handlerOf returns what answers the calls of a tool that the client runs; nil where nothing does.
func handlerOf(m *manifests.Manifest, shell handler) handler {
	switch {
	case m.Type == manifests.LocalShellTool:
		return shell
	case m.Name == "ask_user":
		return askUser
	}
	return nil
}

// resume has all answered that a batch waits for, and goes on with it. Where that does not come to
// be, what has been answered already is kept, since it is not to be done twice.
func (a *agent) resume(ctx context.Context, state executor.State, pending []tool.Action, given []tool.Answer) (executor.Report, error) {
	outputs, approvals, err := a.answers(ctx, pending, given)
	if err != nil {
		return executor.Report{}, a.suspend(state, outputs, err)
	}
	report, err := a.host.ResumeStream(ctx, executor.Resumption{State: state, Session: a.session, Outputs: outputs, Approvals: approvals}, a.show)
	if err != nil {
		return executor.Report{}, a.suspend(state, outputs, err)
	}
	if a.from != nil {
		a.from.settled = true
	}
	return report, nil
}

// answers answers actions one after the other, but for those that were given their outputs before.
// With an error come the outputs that there are so far. Approvals are not kept: who goes on is asked
// anew.
func (a *agent) answers(ctx context.Context, pending []tool.Action, given []tool.Answer) (outputs []tool.Answer, approvals []tool.Approval, err error) {
	outputs = slices.Clone(given)
	for _, action := range pending {
		if slices.ContainsFunc(given, func(answer tool.Answer) bool { return answer.CallID == action.CallID }) {
			continue
		}
		if action.Type == tool.NeedsApproval {
			approval, err := a.person.approve(ctx, action)
			if err != nil {
				return outputs, nil, err
			}
			approvals = append(approvals, approval)
			continue
		}
		result := tool.Result{Error: "the client does not know how to run " + action.Tool}
		if handle, ok := a.handlers[action.Tool]; ok {
			if result, err = handle(ctx, a.person, action); err != nil {
				return outputs, nil, err
			}
		}
		outputs = append(outputs, tool.Answer{CallID: action.CallID, Result: result})
	}
	return outputs, approvals, nil
}

// askUser puts a model's question to the person.
func askUser(ctx context.Context, p *person, action tool.Action) (tool.Result, error) {
	var asked struct {
		Question string   `json:"question"`
		Options  []string `json:"options"`
	}
	if err := json.Unmarshal(action.Arguments, &asked); err != nil {
		return tool.Result{Error: "the question cannot be read: " + err.Error()}, nil
	}
	if !p.present {
		return tool.Result{Error: errAbsent.Error()}, nil
	}
	p.print("\nthe model asks: %s\n", asked.Question)
	for i, option := range asked.Options {
		p.print("  %d  %s\n", i+1, option)
	}
	p.forget(ctx)
	prompt := "your answer: "
	if p.later {
		prompt = "your answer, or /later: "
	}
	answer, err := p.line(ctx, prompt)
	switch {
	case errors.Is(err, errAbsent):
		return tool.Result{Error: err.Error()}, nil
	case err != nil:
		return tool.Result{}, err
	case p.later && strings.EqualFold(answer, "/later"):
		return tool.Result{}, errLater
	}
	if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(asked.Options) {
		answer = asked.Options[n-1]
	}
	if answer == "" {
		answer = "(the user gave no answer)"
	}
	return tool.Result{Success: true, Output: answer}, nil
}

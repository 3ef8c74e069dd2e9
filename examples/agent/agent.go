package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

const instructions = "You are a careful assistant. Use the tools where they help. Say so when something cannot be done."

// agent lets a model with tools answer a person.
type agent struct {
	model   model
	host    *caisson.Host
	session *executor.Session
	person  *person
	out     io.Writer // receives the model's text
}

// ask answers a question: the model responds, its calls run, and it gets their results, until it makes
// no more calls.
func (a *agent) ask(ctx context.Context, question string, rounds int) error {
	messages := []json.RawMessage{message("system", instructions), message("user", question)}
	for range rounds {
		answer, err := a.model.answer(ctx, messages, a.say)
		if err != nil {
			return fmt.Errorf("the model's answer cannot be read: %w", err)
		}
		if answer.FinishReason == tool.FinishLength || answer.FinishReason == tool.FinishContentFilter {
			a.person.print("· the server cut the answer off: %s\n", answer.FinishReason)
		}
		if len(answer.ToolCalls) == 0 {
			return nil
		}
		report, err := a.run(ctx, answer.ToolCalls)
		if err != nil {
			return err
		}
		for _, record := range report.Records {
			if slices.Contains(report.Final, record.CallID) { // its output is the answer
				a.say(record.Result.Output + "\n")
			}
		}
		if len(report.Final) > 0 {
			return nil
		}
		if messages, err = a.model.ran(messages, answer, report.Records); err != nil {
			return err
		}
	}
	return fmt.Errorf("the model did not finish within the limit of --rounds=%d; raise it", rounds)
}

// run runs the calls of one answer, and asks the person about those that need approval.
func (a *agent) run(ctx context.Context, calls []tool.Call) (executor.Report, error) {
	report, err := a.host.Stream(ctx, executor.Batch{Session: a.session, Calls: calls}, a.show)
	for err == nil && report.Status == executor.RequiresAction {
		next := executor.Resumption{State: *report.State, Session: a.session}
		for _, action := range report.Pending {
			if action.Type != tool.NeedsApproval {
				refused := tool.Result{Error: "the client does not know how to run " + action.Tool}
				next.Outputs = append(next.Outputs, tool.Answer{CallID: action.CallID, Result: refused})
				continue
			}
			approval, err := a.person.approve(ctx, action)
			if err != nil {
				return report, err
			}
			next.Approvals = append(next.Approvals, approval)
		}
		report, err = a.host.ResumeStream(ctx, next, a.show)
	}
	return report, errors.Join(err, ctx.Err())
}

// say prints the model's text. Nothing can be done if the terminal fails.
func (a *agent) say(text string) { _, _ = io.WriteString(a.out, visible(text)) }

// show prints one event of a batch.
func (a *agent) show(event tool.Event) bool {
	for _, call := range event.Calls {
		a.person.print("· %s %s …\n", oneLine(call.Tool), oneLine(call.Arguments))
	}
	if event.Type == tool.CallFinished {
		result := event.Record.Result
		said := result.Output
		if !result.Success { // the kind is the host's word; the rest may be the tool's
			said = string(result.Kind) + ": " + result.Error + " " + result.Output
		}
		a.person.print("· %s: %s\n", oneLine(event.Tool), oneLine(said))
	}
	return true
}

// oneLine shortens arguments and results for display.
func oneLine(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > 160 {
		runes = append(runes[:160], '…')
	}
	return string(runes)
}

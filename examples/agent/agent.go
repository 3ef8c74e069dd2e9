package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// agent is one conversation with a model that has tools. It is for one goroutine.
type agent struct {
	options  options
	model    *endpoint
	host     *caisson.Host
	session  *executor.Session
	offered  json.RawMessage // the tools
	handlers map[string]handler
	person   *person
	screen   *screen
	talk     conversation
	from     *suspended // what was gone on with; nil where the conversation began here
}

func newAgent(o options, env environment, model *endpoint, person *person, box *toolbox, from *suspended) (*agent, error) {
	var session executor.SessionOptions
	if from != nil {
		session.Approvals = from.Approvals
	}
	opened, err := box.host.NewSession(session)
	if err != nil {
		return nil, err
	}
	offered, err := box.definitions(model.dialect)
	if err != nil {
		return nil, err
	}
	a := &agent{
		options: o, model: model, host: box.host, session: opened, offered: offered, handlers: box.handlers,
		person: person, screen: &screen{out: env.stdout, notes: env.stderr}, from: from,
	}
	if from != nil {
		a.talk = from.Conversation
		return a, nil
	}
	return a, a.talk.say("system", o.instructions)
}

// converse answers one question after the other. One that fails leaves no trace in the conversation.
func (a *agent) converse(ctx context.Context) error {
	for {
		question, err := a.person.line(ctx, "> ")
		switch {
		case errors.Is(err, errAbsent):
			return nil
		case err != nil:
			return err
		case question == "":
			continue
		}
		err = a.ask(ctx, question)
		var known *failure
		switch {
		case err == nil:
		case ctx.Err() != nil, !a.person.present, errors.As(err, &known) && known.code == exitWaiting:
			return err
		default:
			report(ctx, a.screen.notes, err)
		}
	}
}

// ask answers a question.
func (a *agent) ask(ctx context.Context, question string) error {
	before := len(a.talk.Messages)
	a.talk.Rounds, a.talk.Tokens = 0, 0
	err := a.talk.say("user", question)
	if err == nil {
		err = a.answer(ctx)
	}
	if err != nil {
		a.talk.Messages = a.talk.Messages[:before]
	}
	return err
}

// answer lets the model speak, and runs what it calls, until it has nothing more to call.
func (a *agent) answer(ctx context.Context) error {
	for {
		if err := a.talk.within(a.options.bounds); err != nil {
			return err
		}
		request, err := a.talk.request(a.options.model, a.offered)
		if err != nil {
			return err
		}
		response, err := a.model.answer(ctx, request, a.screen.piece)
		a.screen.endLine()
		if err != nil {
			return err
		}
		a.talk.count(request, response)
		if err := a.talk.answered(a.model.dialect, response); err != nil {
			return err
		}
		a.screen.stopped(response.FinishReason)
		if len(response.ToolCalls) == 0 {
			return nil
		}
		report, err := a.host.Stream(ctx, executor.Batch{Session: a.session, Calls: response.ToolCalls}, a.show)
		if err != nil {
			return err
		}
		if final, err := a.settle(ctx, report, nil); final || err != nil {
			return err
		}
	}
}

// goOn goes on with a conversation that was kept.
func (a *agent) goOn(ctx context.Context, from *suspended) error {
	report := executor.Report{Status: executor.RequiresAction, Pending: from.Batch.Pending(), State: &from.Batch}
	if final, err := a.settle(ctx, report, from.Outputs); final || err != nil {
		return err
	}
	return a.answer(ctx)
}

// settle has what a batch waits for answered until it has ended, and tells the model what came of it.
// It reports whether the batch was the answer itself: that of a tool whose output is final.
func (a *agent) settle(ctx context.Context, report executor.Report, outputs []tool.Answer) (final bool, err error) {
	for report.Status == executor.RequiresAction {
		report, err = a.resume(ctx, *report.State, report.Pending, outputs)
		if err != nil {
			return false, err
		}
		outputs = nil
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	for _, record := range report.Records {
		if slices.Contains(report.Final, record.CallID) {
			a.screen.answer(record.Result.Output)
		}
	}
	return len(report.Final) > 0, a.talk.ran(a.model.dialect, report.Records)
}

// show shows an event, and wants to see the next one.
func (a *agent) show(event tool.Event) bool {
	a.screen.event(event)
	return true
}

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/unapplied"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// start opens the session in which calls run. It ends with this process.
func (h *host) start(ctx context.Context, more ...string) (err error) {
	if err := h.asksOfTools(); err != nil {
		return err
	}
	session := executor.SessionOptions{Tenant: h.options.tenant, Context: h.operator.context}
	if h.options.agent != "" {
		if _, err := h.agentNamed(ctx, h.options.agent); err != nil {
			return err
		}
		if session.AllowedNow, err = h.agentTools(ctx, more); err != nil {
			return err
		}
	}
	h.session, err = h.NewSession(session)
	if exposed, ok := errors.AsType[*caisson.Error](err); ok && exposed.Kind == caisson.ErrExposed {
		return failed(exitUsage, exposed.Err.Error(), apartHint)
	}
	return usual(err)
}

// execute runs new calls, and shows their events if v follows them.
func (h *host) execute(ctx context.Context, batch executor.Batch, v *batchView) (report executor.Report, err error) {
	ctx, cancel := h.runaways.within(ctx)
	defer cancel()
	batch.Session = h.session
	if v.follows() {
		report, err = h.Stream(ctx, batch, v.follow)
	} else {
		report, err = h.Execute(ctx, batch)
	}
	return report, usual(err)
}

// resume resumes a paused batch like execute.
func (h *host) resume(
	ctx context.Context, resumption executor.Resumption, v *batchView,
) (report executor.Report, err error) {
	running, cancel := h.runaways.within(ctx)
	defer cancel()
	resumption.Session = h.session
	if v.follows() {
		report, err = h.ResumeStream(running, resumption, v.follow)
	} else {
		report, err = h.Resume(running, resumption)
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // it was interrupted before anything ran
	}
	return report, err
}

// usual converts an error of the executor that is not in a record to a usage error.
func usual(err error) error {
	if _, known := errors.AsType[*failure](err); err == nil || known {
		return err
	}
	return failed(exitUsage, err.Error())
}

// asksOfTools rejects an --ask that matches no tool, because the operator relies on being asked.
func (h *host) asksOfTools() error {
	var tools []*manifests.Manifest
	for _, entry := range h.registry.List() {
		if entry.Manifest != nil {
			tools = append(tools, entry.Manifest)
		}
	}
	near := func(name string) []string { return h.registry.Nearest(name, 1) }
	if u, found := unapplied.Unnamed(h.options.asks, tools, near); found {
		return failed(exitUsage, fmt.Sprintf("%s: %s", u.Origin, u.Text), u.Fix)
	}
	return nil
}

// order runs one call that a person requests, which approves it unless a flag or the policy asks.
func (h *host) order(ctx context.Context, approved bool, call tool.Call) (executor.Report, error) {
	entry, known := h.registry.Get(call.Function.Name)
	if known && entry.Manifest.Execution == manifests.ExecutionClient {
		return executor.Report{},
			failed(exitUsage, fmt.Sprintf("%s is run by the client, and caisson call has no client", entry.Name),
				`"caisson batch" prints the call, and accepts its output with --resume`)
	}
	if err := h.start(ctx); err != nil {
		return executor.Report{}, err
	}
	report, err := h.execute(ctx, executor.Batch{Calls: []tool.Call{call}}, nil)
	// The action to approve may change while the call is paused, so limit the number of attempts.
	for tries := 0; err == nil && report.Status == executor.RequiresAction; tries++ {
		if tries == 3 {
			return report, failed(exitFailed, entry.Name+": what it may do keeps changing, so the call cannot be approved")
		}
		report, err = h.decide(ctx, report, approved || !h.operator.asks(entry.Manifest))
	}
	if ctx.Err() != nil {
		return report, err
	}
	return report, usual(err)
}

// decide resumes a call that is paused for approval.
func (h *host) decide(ctx context.Context, paused executor.Report, approve bool) (executor.Report, error) {
	resumption := executor.Resumption{State: *paused.State}
	for _, action := range paused.Pending {
		approval := tool.Approval{CallID: action.CallID, Approve: approve, Fingerprint: action.Fingerprint}
		if !approve {
			approval.Reason = action.Reason
		}
		resumption.Approvals = append(resumption.Approvals, approval)
	}
	return h.resume(ctx, resumption, nil)
}

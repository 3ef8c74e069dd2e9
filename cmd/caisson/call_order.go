package main

import (
	"context"
	"fmt"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// order runs one call that a person has asked for, by which it is approved, unless somebody has
// said that calls of its tool wait for more than that.
func (h *host) order(ctx context.Context, env environment, approved bool, call tool.Call) (_ done, err error) {
	entry, known := h.registry.Get(call.Function.Name)
	if known && entry.Manifest.Execution == manifests.Client {
		return done{}, failed(exitUsage, fmt.Sprintf("%s is run by the client, and caisson call has none", entry.Name),
			`"caisson batch" announces the call, and takes what came of it with --resume`)
	}
	r, err := h.runner(env)
	if err != nil {
		return done{}, err
	}
	defer r.close()
	ended, err := r.execute(ctx, executor.Batch{Calls: []tool.Call{call}}, nil)
	// What the call is made of may change while it waits; that ends at some point.
	for tries := 0; err == nil && ended.Status == executor.RequiresAction && tries < 3; tries++ {
		ended, err = h.decide(ctx, r, ended, approved || !h.operator.asks(entry.Manifest))
	}
	if err == nil && ended.Status == executor.RequiresAction {
		return done{}, failed(exitFailed, entry.Name+": what it may do changes all the time, so that the call cannot be approved")
	}
	if ctx.Err() != nil {
		return ended, err
	}
	return ended, usual(err)
}

// decide goes on with a call that waits for approval.
func (h *host) decide(ctx context.Context, r *runner, waiting done, approve bool) (done, error) {
	resumption := executor.Resumption{State: *waiting.State}
	for _, action := range waiting.Pending {
		approval := tool.Approval{CallID: action.CallID, Approve: approve, Fingerprint: action.Fingerprint}
		if !approve {
			approval.Reason = action.Reason
		}
		resumption.Approvals = append(resumption.Approvals, approval)
	}
	return r.resume(ctx, resumption, nil)
}

// orderHints says what lets a call run that waits for more than having been asked for.
func orderHints(record tool.Record) []string {
	if len(record.Denials) == 0 || record.Denials[0].Permission != approvalPermission {
		return nil
	}
	return []string{"approve of it with --approve"}
}

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/unapplied"
	"github.com/caisson-run/caisson/manifests"
)

// runner runs calls in one session, which ends with this process. Close it.
type runner struct {
	host    *host
	session *executor.Session
	env     environment
}

// done is what became of calls.
type done struct {
	executor.Report
	ledger *ledger
	// causes of the host's own failures, which the records leave out, come by call id.
	causes map[string]error
}

// runner returns what runs calls.
func (h *host) runner(env environment) (*runner, error) {
	if err := h.asksOfTools(); err != nil {
		return nil, err
	}
	if err := h.recordsApart(); err != nil {
		return nil, err
	}
	r := &runner{host: h, env: env}
	var err error
	if r.session, err = h.NewSession(executor.SessionOptions{Context: h.operator.context}); err != nil {
		r.close()
		return nil, usual(err)
	}
	return r, nil
}

// close ends the runner, once its calls have ended.
func (r *runner) close() { r.host.ledger.close(r.env) }

// execute runs calls that nothing was done about yet, and shows what happens where there is a view.
func (r *runner) execute(ctx context.Context, batch executor.Batch, v *view) (done, error) {
	ctx, cancel := r.host.runaways.within(ctx)
	defer cancel()
	batch.Session = r.session
	var report executor.Report
	var err error
	if v.follows() {
		report, err = r.host.Stream(ctx, batch, v.follow)
	} else {
		report, err = r.host.Execute(ctx, batch)
	}
	return r.done(report), usual(err)
}

// resume goes on with a batch that waits, as execute does.
func (r *runner) resume(ctx context.Context, resumption executor.Resumption, v *view) (done, error) {
	resumption.Session = r.session
	running, cancel := r.host.runaways.within(ctx)
	defer cancel()
	var report executor.Report
	var err error
	if v.follows() {
		report, err = r.host.ResumeStream(running, resumption, v.follow)
	} else {
		report, err = r.host.Resume(running, resumption)
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // it was interrupted before anything ran
	}
	return r.done(report), err
}

func (r *runner) done(report executor.Report) done {
	return done{report, r.host.ledger, r.host.witness.causes}
}

// usual words an error of the executor's that is not in a record: the command line is to blame.
func usual(err error) error {
	var known *failure
	if err == nil || errors.As(err, &known) {
		return err
	}
	return failed(exitUsage, err.Error())
}

// recordsApart refuses a folder for records where a tool may write.
func (h *host) recordsApart() error {
	folder, err := h.options.state.records()
	if err != nil || folder == "" {
		return nil // the ledger says that nothing is kept
	}
	return h.keepsFromTools(keptRecords, []string{string(folder)})
}

// asksOfTools refuses an --ask that no tool has: somebody relies on it.
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

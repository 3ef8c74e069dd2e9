// Package executor runs the tool calls of a model's answer and returns one record for
// each, in the order of the calls.
//
//	e, err := executor.New(registry, executor.Options{})
//	session, err := e.NewSession(executor.SessionOptions{Tenant: "acme", Context: map[string]string{"project_id": "p1"}})
//	report, err := e.Execute(ctx, executor.Batch{Session: session, Calls: calls})
//
// Each call is checked before anything runs: its arguments are parsed, its tool is resolved and must be
// allowed, context values are filled in, the model's arguments are repaired, and the complete arguments
// must fit the tool's schema. The free text of a custom call becomes its tool's only parameter
// first. A call that fails a check is not run; its record has the reason. Nor is a call in which the
// response was cut off ([tool.Call.Incomplete]), even if its arguments fit.
//
// # Repair
//
// Models write "5" for 5, one value for a list of one, or their arguments inside
// {"arguments": …}. If the schema leaves no doubt about the intended value, the arguments are
// corrected, and absent members get their defaults. Arguments that fit are not changed otherwise, and
// context values never are. [tool.Record.Repairs] lists each change, in an order in which they can be
// applied to what the model wrote; absent values are null there. [Options.NoRepair] switches repair off.
//
// A manifest may declare other names for parameters (parameter_aliases). Arguments under such a name get the
// parameter's own before they are repaired and checked, those of programs too; [tool.Record.Repairs] lists that
// as well.
//
// # Order
//
// Adjacent calls of read-only tools run in parallel. Any other call is a barrier: it starts when all
// calls before it have ended, and no call after it starts until it has ended. A failure never stops another
// call, and nothing is retried.
//
// There is one queue. A free slot goes to the tenant with the fewest running calls, and within it to
// the session with the fewest ([Limits]). A call is not run, and its kind is busy, if it waits too long for a
// slot, exceeds a rate ([Rates]), or its tool's circuit breaker is open ([Breaker]). If it is known when to
// try again, the error says so.
//
// # Paused batches
//
// Calls of tools that the client runs (execution: client, or Batch.Client) need an output, and calls of tools that ask
// for it (see [registry.Tool]; otherwise, destructive tools) need an approval. A call that fails a check is refused
// without asking for either. When no other call can run, the batch pauses with [RequiresAction] and a [State], and
// [Executor.Resume] resumes it, in any process:
//
//	report, err := e.Execute(ctx, executor.Batch{Session: session, Calls: calls})
//	for err == nil && report.Status == executor.RequiresAction {
//		outputs, approvals := answer(report.Pending)
//		report, err = e.Resume(ctx, executor.Resumption{
//			State: *report.State, Session: session, Outputs: outputs, Approvals: approvals,
//		})
//	}
//
// The order of calls holds across pauses. All approvals are requested at once. A client call that is not
// read-only is announced when the calls before it that run here have ended, and read-only calls after it
// wait for its output. Adjacent client calls are announced together, and the client keeps their order. A
// batch whose context has ended does not pause. A waiting call takes no slot and counts toward no rate.
//
// A state grants nothing. What a batch may do comes from the session that resumes it, which must have the
// same tenant and the same context values, and calls that have not run are checked again. An approval
// is bound to a fingerprint that covers the call's id and the calls before it, the identities of the tool and of the
// tools that it may call ([registry.Entry.Identity]), the complete arguments, the context values, files and the
// caller's requests, the tenant and the user. The fingerprint is computed again before the call runs; if it
// differs, the call must be approved again. Take the fingerprint from where the call was shown, and not from a state
// that was stored since, because that may have been changed. Approvals apply to a call, to the session or for a time
// ([Session.Approvals]). An approval for a call that cannot run yet is kept with the session and not in the state: a
// program that resumes in another session passes it in [SessionOptions], or is asked again. Nested calls cannot
// wait: they run on an approval that the session has, or are denied.
//
// # Cache
//
// The result of a read-only call serves later identical calls in all sessions of the tenant, for five minutes
// or as long as the tool's manifest says (behavior.cache). Calls are identical if they have the same
// registration of a tool, arguments, context values, tenant, user, files and request of the caller's, and, if
// the tool may call others, the same registrations and requests of these. Only successes are cached. Identical
// calls at the same time are run once.
//
// A call of a tool that is not read-only may invalidate the cache: as it starts, and again
// as it ends, the tenant's cached results are dropped, and, if the tool may write to files, the
// results of all tools that see files. Results of calls that run meanwhile are not cached either.
//
// The record shows this: Cached for a cache hit; Skipped for a duplicate in the batch, which also shares
// failures, unless they say nothing about the tool; Source for the call that ran. [Reuse] bounds the
// cache, or switches it off.
//
// # Nested calls
//
// A tool may call other tools through [tool.Invocation.Host]. Such a call has a separate record,
// with its caller in Parent, which goes to the [Recorder] and to subscribers but not into the
// report. It runs in its caller's slot, with its caller's deadline, context
// values and allowed tools, and its own tool's permissions. A read-only tool may only
// call read-only tools.
//
// # Context values
//
// The host fills in the parameters that a manifest lists as context. A model that sets
// one itself is refused, in any spelling: many JSON decoders, Go's among them, match
// keys case-insensitively, so that a forged "Project_ID" would win over the host's
// "project_id".
//
// # What a batch reports
//
// The start and the end of each call are logged: at level info, at warn if the tool or the
// caller is at fault, and at error if something crashed. Subscribers get events ([Executor.Subscribe]), a
// [Recorder] gets each record, and a [Stream] shows the progress of one batch. A result that exceeds the limit for
// models ([Output]) is cut, and stays readable in pages.
package executor

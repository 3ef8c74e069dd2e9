// Package executor runs the tool calls of a model's answer and returns one record for
// each, in the order of the calls.
//
//	e, err := executor.New(registry, executor.Options{})
//	session, err := e.NewSession(executor.SessionOptions{Tenant: "acme", Context: map[string]string{"project_id": "p1"}})
//	report, err := e.Execute(ctx, executor.Batch{Session: session, Calls: calls})
//
// Each call is checked before anything runs: its arguments are parsed, its tool is
// looked up and must be allowed, the context values are filled in, what the model wrote is
// repaired, and the complete arguments must fit the tool's schema. The free text of a
// custom call becomes its tool's only parameter first. A call that fails a check is recorded
// with the reason and not run.
//
// # Repair
//
// Models write "5" for 5, one value for a list of one, or their arguments inside
// {"arguments": …}. Where the schema leaves no doubt about what was meant, the arguments are
// corrected, and absent members get their defaults. What fits is not changed otherwise, nor
// are context values. The record lists each change in [tool.Record.Repairs], in an
// order in which they can be applied to what the model wrote; absent
// values are null there. [Options.NoRepair] switches it off.
//
// # Order
//
// Calls of read-only tools that stand next to each other run in parallel. Any other
// call is a barrier: it starts when all calls before it have ended, and none after it
// starts until it has. A failure never stops another call, and nothing is retried.
//
// There is one queue. A free place goes to the tenant with the fewest running calls, and within it to
// the session with the fewest ([Limits]). A call that finds no place in time, exceeds a rate ([Rates]), or
// whose tool's circuit breaker is open ([Breaker]), is not run: its kind is busy. Where it is known when to
// try again, its error says so.
//
// # Paused batches
//
// Some calls need somebody outside: those of tools that the client runs (execution: client) need an
// output, and those of tools that ask for it ([registry.Approver]; else, destructive ones) need an
// approval. A call that fails a check is refused as ever, and nobody is asked. Once no other call
// can run, the batch pauses with [RequiresAction] and a [State], and [Executor.Resume] resumes it,
// in any process:
//
//	report, err := e.Execute(ctx, executor.Batch{Session: session, Calls: calls})
//	for err == nil && report.Status == executor.RequiresAction {
//		outputs, approvals := answer(report.Pending)
//		report, err = e.Resume(ctx, executor.Resumption{State: *report.State, Session: session, Outputs: outputs, Approvals: approvals})
//	}
//
// The order of calls holds across pauses. All approvals are asked for at once. A client call
// that changes something is announced when the calls before it that run here have ended, and
// read-only calls behind it are held back until it is answered; client calls that stand next
// to each other are announced together, and the client keeps their order. A batch whose context ends
// waits for nobody. A call that waits takes no place and counts for no rate.
//
// A state grants nothing. What a batch may do comes from the session that resumes it, which must be of the
// same tenant and with the same context values, and calls that have not run are checked again. An approval
// is bound to a fingerprint of what it is for: what the tool can do, the complete arguments, the
// context values, the tenant, the call's id, and the tools that this one may call. It is computed again
// before the call runs, and what was shown is compared with what would run; if anything differs,
// the call must be approved again. An approval names the fingerprint that was shown with the call: take it
// from there, and not from a state that was stored since, which somebody may have changed. Approvals hold for
// a call, for the session or for a time ([Session.Approvals]). One that was given for a call which
// cannot run yet is kept with the session and not in the state: a program that resumes in another session
// hands it over with [SessionOptions], or is asked again. Calls that tools make cannot wait: they
// run on an approval that the session has, or are denied.
//
// # Cache
//
// The result of a read-only call is given to later calls that ask the same, for five minutes or
// as long as the tool's manifest says (behavior.cache), in all sessions of the tenant. Two calls ask the
// same if they call the same registration of a tool with the same arguments, context values, tenant,
// user and files; where the tool may call others, these must be the same too. Only successes are
// cached. Calls that ask the same at the same time are run once.
//
// A call of a tool that is not read-only may invalidate them: as it starts, and again
// as it ends, the tenant's cached results are dropped, and, if the tool may write to files, the
// results of all tools that see files. What is being looked up meanwhile is not cached either.
//
// A record says so: Cached, for a cache hit; Skipped, for a duplicate in the batch,
// which shares failures too, but for those that say nothing of the tool; Source, for the call
// that was run. [Reuse] bounds the cache, or switches it off.
//
// # Calls that tools make
//
// A tool may call others through [tool.Invocation.Host]. Such a call has a record of its own,
// with its caller in Parent, which goes to the [Recorder] and to subscribers but not into the
// report. It runs in its caller's place, with its caller's deadline, context
// values and allowed tools, and its own tool's permissions. A read-only tool may only
// call read-only tools.
//
// # Long results
//
// A result that is longer than what goes to a model ([Output]) is cut between characters,
// says so in its text, and stays readable in pages: by the program through
// [Session.Page], by the model through [OutputTool].
//
// # Context values
//
// The host fills in the parameters that a manifest lists as context. A model that sets
// one itself is refused, in whatever spelling: many JSON decoders, Go's among them, match
// keys without regard to case, so that a forged "Project_ID" would win over the host's
// "project_id".
//
// # Streams
//
// A [Stream] shows the progress of one batch: one goroutine runs it, another reads [Stream.Events].
// Calls run in parallel and speak one after the other, in the order in which each was first
// heard; while one speaks, from its first output to its end, what others say waits. Hidden calls,
// and calls that tools made, are not in it. A reader that is slow, or gone, holds nothing up: what
// waits is bounded ([StreamOptions]), of progress and of partial images the latest is kept, and
// what is dropped is counted in the call's next event. Starts, waits and ends are never dropped.
//
// # Logs and events
//
// The log has the start and the end of each call: at level info, or warn where the tool or the
// caller is at fault, or error where something crashed. Subscribers get events from queues of
// their own ([Executor.Subscribe]), and a [Recorder] each record.
package executor

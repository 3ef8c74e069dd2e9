// Package executor runs the tool calls of a model's answer and returns one record for
// each, in the order of the calls.
//
//	e, err := executor.New(registry, executor.Options{})
//	session, err := e.NewSession(executor.SessionOptions{Tenant: "acme", Context: map[string]string{"project_id": "p1"}})
//	report, err := e.Execute(ctx, executor.Batch{Session: session, Calls: calls})
//
// Each call is checked before anything runs: its arguments are parsed, its tool is
// looked up, the tool must be allowed, the context's values are filled in, what the model
// wrote is repaired, and the complete arguments must fit the tool's schema. The free text of a
// custom call becomes the only parameter of its tool before that. A call that
// fails a check is recorded with the reason and not run.
//
// # Repair
//
// Models write "5" for 5, one value for a list of one, or their arguments inside
// {"arguments": …}. Where the schema leaves no doubt about what was meant, that is
// changed, and absent members get their defaults. What fits is not changed otherwise, nor
// are values of the host. The record lists each change in [tool.Record.Repairs], in an
// order in which they can be made one after the other on what the model wrote; absent
// values are null there. [Options.NoRepair] switches it off.
//
// # Order
//
// Calls of read-only tools that stand next to each other run at the same time. Any other
// call is a barrier: it starts when all calls before it have ended, and none after it
// starts until it has. A failure never stops another call, and nothing is retried.
//
// Places to run in are given to the tenant that has the fewest, in it to the session that has
// the fewest ([Limits]). A call that finds no place in time, that is above a rate ([Rates]), or
// whose tool keeps crashing ([Breaker]), is not run: its kind is busy. Where it is known when to
// try again, its error says so.
//
// # Waiting for the client and for approval
//
// Some calls need somebody outside: those of tools that the client runs (execution: client) need an
// output, and those of tools that ask ([registry.Guarded]; else, that are destructive) need an
// approval. A call that fails a check is refused as ever, and nobody is asked. Where no other call
// can go on, the batch ends with [RequiresAction] and a [State], and [Executor.Resume] goes on with
// it, in any process:
//
//	report, err := e.Execute(ctx, executor.Batch{Session: session, Calls: calls})
//	for err == nil && report.Status == executor.RequiresAction {
//		outputs, approvals := answer(report.Pending)
//		report, err = e.Resume(ctx, executor.Resumption{State: *report.State, Session: session, Outputs: outputs, Approvals: approvals})
//	}
//
// The order of calls holds across pauses. All approvals are asked for at once. A call of the client's
// that changes something is announced when the calls before it that are run here have ended, and
// read-only calls behind it are held back until it is answered; calls of the client's that stand next
// to each other are announced together, and the client keeps their order. A batch whose context ends
// waits for nobody. What waits takes no place and counts for no rate.
//
// A state is no authority. What a batch may do comes from the session that resumes it, of the same
// tenant and with the same context values, and calls that have not run are checked anew. An approval
// is bound to a fingerprint of what it is for: what the tool can do, the complete arguments, the
// context values, the tenant, the call's id, and the tools that this one may call. It is computed again
// before the call is run, and what was shown is compared with what would run; where anything differs,
// the call waits anew. An approval names the fingerprint that stood beside what was shown: take it from
// there, and not from a state that was stored since, which somebody may have changed. Approvals hold for
// a call, for the session or for a time ([Session.Approvals]). One that was given for a call which
// cannot run yet is kept with the session and not in the state: whoever goes on in another session
// hands it over with [SessionOptions], or is asked again. Calls that tools make cannot wait: they
// run on an approval that the session has, or are denied.
//
// # Answers that are used again
//
// What a read-only call came to is given to later calls that ask the same, for five minutes or
// as long as the tool's manifest says (behavior.cache), in all sessions of the tenant. To ask the
// same is to call the same registration of a tool with the same arguments, context values, tenant,
// user and files; where the tool may call others, these must be the same too. Only successes are used
// again. Calls that ask the same at one moment are run once.
//
// A call of a tool that is not read-only may make all of them untrue: as it starts, and again
// as it ends, the tenant's answers are forgotten, and, if the tool may write to files, the
// answers of all tools that see files. What was being found out meanwhile is not kept either.
//
// A record says so: Cached, for an answer from before; Skipped, for a duplicate in the batch,
// which shares failures too, but for those that say nothing of the tool; Source, for the call
// that was run. [Reuse] bounds it, or switches it off.
//
// # Calls that tools make
//
// A tool may call others through [tool.Invocation.Host]. Such a call has a record of its own,
// with its caller in Parent, which goes to the [Recorder] and to subscribers but not into the
// report. It has its caller's place, so that it waits for none; its caller's time, context
// values and allowed tools; and its own tool's permissions. A tool that is read-only may only
// call such.
//
// # Long results
//
// A result that is longer than what goes to a model ([Output]) is cut where no character is
// broken, says so in its text, and stays readable in pages: by the program through
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
// A [Stream] shows one batch as it happens: one goroutine runs it, another reads [Stream.Events].
// Calls run at the same time and speak one after the other, in the order in which each was first
// heard; while one speaks, from its first output to its end, what others say waits. Hidden calls,
// and calls that tools made, are not in it. A reader that is slow, or gone, holds nothing up: what
// waits is bounded ([StreamOptions]), of progress and of partial images the latest is kept, and
// what is dropped is counted in the call's next event. Starts, waits and ends are never dropped.
//
// # Who is told
//
// The log has the start and the end of each call: at level info, or warn where the tool or the
// caller is at fault, or error where something crashed. Subscribers get events from queues of
// their own ([Executor.Subscribe]), and a [Recorder] each record.
package executor

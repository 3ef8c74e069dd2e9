// Package executor runs the tool calls of a model's answer and returns one record for
// each, in the order of the calls.
//
//	e, err := executor.New(registry, executor.Options{})
//	session, err := e.NewSession(executor.SessionOptions{Tenant: "acme", Context: map[string]string{"project_id": "p1"}})
//	report, err := e.Execute(ctx, executor.Batch{Session: session, Calls: calls})
//
// Each call is checked before anything runs: its arguments are parsed, its tool is
// looked up, the tool must be allowed, the context's values are filled in, what the model
// wrote is repaired, and the complete arguments must fit the tool's schema. A call that
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
// # Answers that are used again
//
// What a read-only call came to is given to later calls that ask the same, for five minutes or
// as long as the tool's manifest says (behavior.cache), in all sessions of the tenant. To ask the
// same is to call the same registration of a tool with the same arguments, context values and
// tenant; where the tool may call others, these must be the same too. Only successes are used
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
// # Who is told
//
// The log has the start and the end of each call: at level info, or warn where the tool or the
// caller is at fault, or error where something crashed. Subscribers get events from queues of
// their own ([Executor.Subscribe]), and a [Recorder] each record.
package executor

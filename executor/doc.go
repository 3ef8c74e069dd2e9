// Package executor runs the tool calls of a model's answer and returns one record for
// each, in the order of the calls.
//
//	e, err := executor.New(registry, executor.Options{})
//	records, err := e.Execute(ctx, executor.Batch{Calls: calls, Context: map[string]string{"project_id": "p1"}})
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
// # Context values
//
// The host fills in the parameters that a manifest lists as context. A model that sets
// one itself is refused, in whatever spelling: many JSON decoders, Go's among them, match
// keys without regard to case, so that a forged "Project_ID" would win over the host's
// "project_id".
package executor

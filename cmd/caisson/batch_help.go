package main

const batchHelp = `Run tool calls as a language model returned them. The input is a file or standard input:
a provider's whole response or streamed transcript, or JSON with one call, an array of
calls, a message with "tool_calls", or several of these one after the other.

What is printed is for the next request. A response of OpenAI (chat completions or the
Responses API), Anthropic, Gemini or MCP is recognised and answered as that provider takes
results: one JSON array on a line. --dialect says which it is. Calls with nothing around
them, and --json, give one record a line, in the order of the calls.

Calls of read-only tools that stand next to each other run at the same time, and one that
asks what another has asked gets its answer; every other call runs by itself, in its
turn. Arguments that do not fit are repaired where there is no doubt about what was meant:
the record lists each change.

That a call fails is a normal result: its record says so, and the exit code is 0. It is 1
where the host itself failed, 2 where the input cannot be read, and 5 where the batch waits.

--stream shows events as they happen: one JSON object with "type" a line, or server-sent
events. One call speaks at a time; hidden tools are silent. The last line (with server-sent
events the last event, caisson.batch) is an object with "status" and all that a program
needs to go on: "completed" with the "results" that are printed without --stream, or
"requires_action". Where the batch then cannot be kept or written, on a full disk for
instance, the exit code is 1, "status" is "failed", and "results" are the records of the
calls that have ended. Without --stream these are printed one a line, and on standard error
where nothing else can be written.

A batch waits (exit code 5) where the client runs a tool itself (execution: client), and
where a call needs approval: of a tool that is destructive, unless the policy's "approve"
or --approve-tool has it, and of one that the policy's "ask" or --ask names. Nobody is
asked on the terminal: programs drive this command. It prints one line of JSON instead:

  {"status": "requires_action", "batch": ID, "required_action": {"type":
   "submit_tool_outputs", "submit_tool_outputs": {"tool_calls": [...], "call_ids": [...]}},
   "approvals": [...], "state": PATH, "expires": TIME}

"tool_calls" are the calls that the client runs, as the provider has them, and "call_ids"
our own ids of these. "approvals" say what is asked for: tool, arguments, permissions, what
it may call ("callees"), reason and fingerprint. --resume goes on, once for each wait, within 24 hours. One that is
killed cannot be gone on with: its calls may have run, which "caisson explain" shows. Tools,
policy, context values and other flags are given again; the hint has the whole command. All
that waits is answered together: by OUTPUTS, which are results as the provider takes them
(or approvals, where it has such), or

  {"tool_outputs": [{"tool_call_id": ID, "output": "TEXT"}], "approvals":
   [{"call_id": ID, "approve": true, "fingerprint": FINGERPRINT}]}

and by --approve ID@FINGERPRINT and --refuse ID. The fingerprint is that of the call that was
looked at; --approve takes its first 20 digits as well. A call that has another fingerprint
by now is not run. Take it from what was printed, not from the file in which the batch is
kept. Instead of "output", "result" holds a whole result, such as {"success": false,
"error": "..."}. A submission with a mistake in it changes nothing. A call that was approved
and has not run when the batch waits again is asked for again.

Results that are long are cut, since a model pays for each byte. The mark in a cut result
names the command that prints the rest. It is meant for whoever runs caisson: a model has
no shell, so hand on to it what "caisson explain --output" prints.

` + keptHelp + `
Batches that wait are kept there, too, with their calls and the results so far. No tool may
be able to write to where they are kept: it could change what is approved.`

const batchExample = `  caisson batch response.json --tools ./wasm-tools
  caisson batch response.json --config caisson.yaml --profile strict --json
  caisson batch response.json --batch-timeout 1m --max-output 16KiB --stream
  curl … | caisson batch --mount /project=./workspaces/{project_id}:rw --context project_id=demo
  caisson batch --resume 019c1a2b-3c4d-7e5f-8a9b-0c1d2e3f4a5b outputs.json --approve call_2@5f0c8a91d3e27b640fce --refuse 'call_3=not this file'`

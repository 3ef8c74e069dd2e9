// Calls a server with the types that openapi-typescript generates and openapi-fetch, and prints what it answered as JSON.
//
// Usage: node client.js URL TOKEN

import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import createClient from "openapi-fetch";
import type { components, paths } from "./caisson.js";

type Schemas = components["schemas"];

const [url, token] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url!, headers: { Authorization: `Bearer ${token}` } });
const session = "typescript";
const answers: Record<string, unknown> = {};

function output(record: Schemas["Record"]): string {
  return (JSON.parse(record.result) as Schemas["Result"]).output ?? record.result;
}

// isRecord tells the record of a call from the run that it has become.
function isRecord(answer: Schemas["Record"] | Schemas["Run"]): answer is Schemas["Record"] {
  return "result" in answer;
}

async function call(body: Schemas["CallRequest"]): Promise<Schemas["Record"]> {
  const { data, error } = await client.POST("/v1/calls", { body });
  assert.ok(data, error?.detail);
  assert.ok(isRecord(data));
  return data;
}

// settled polls a run until it waits or has ended.
async function settled(id: string): Promise<Schemas["Run"]> {
  for (const deadline = Date.now() + 120_000; ; await setTimeout(50)) {
    const { data, error } = await client.GET("/v1/runs/{run_id}", { params: { path: { run_id: id } } });
    assert.ok(data, error?.detail);
    if (data.status !== "queued" && data.status !== "in_progress") return data;
    assert.ok(Date.now() < deadline, data.status);
  }
}

// answer answers a question or approves a call.
async function answer(id: string, action: Schemas["Action"]): Promise<void> {
  const params = { path: { run_id: id } };
  if (action.type === "tool_output") {
    const { data, error } = await client.POST("/v1/runs/{run_id}/submit_tool_outputs", {
      params,
      body: { tool_outputs: [{ tool_call_id: action.call_id, output: "Yes." }] },
    });
    assert.ok(data, error?.detail);
    return;
  }
  assert.ok(action.fingerprint);
  const { data, error } = await client.POST("/v1/runs/{run_id}/approvals", {
    params,
    body: { approvals: [{ call_id: action.call_id, approve: true, fingerprint: action.fingerprint }] },
  });
  assert.ok(data, error?.detail);
}

const multiply: Schemas["Arguments"] = { expression: "6*7" };
answers["call"] = output(await call({ name: "calculator", arguments: multiply, session }));

const batch = await client.POST("/v1/batches", {
  body: {
    calls: [
      { name: "calculator", arguments: { expression: "1+1" } },
      { function: { name: "calculator", arguments: '{"expression": "2+2"}' } },
    ],
  },
});
assert.ok(batch.data && typeof batch.data === "object", batch.error?.detail);
answers["batch"] = batch.data.records.map(output);

const started = await client.POST("/v1/runs", {
  body: {
    calls: [
      { name: "ask_user", arguments: { question: "Delete it?" } },
      { name: "file_delete", arguments: { path: "typescript.txt" } },
    ],
  },
});
assert.ok(started.data && typeof started.data === "object", started.error?.detail);
let run = await settled(started.data.id);
const waited: string[] = [];
while (run.status === "requires_action") {
  const [action] = run.pending;
  assert.ok(action);
  waited.push(action.type);
  await answer(run.id, action);
  run = await settled(run.id);
}
answers["waited"] = waited.sort();
answers["run"] = run.records.map(output);

const listed = await client.GET("/v1/calls", { params: { query: { limit: 2 } } });
assert.ok(listed.data, listed.error?.detail);
answers["listed"] = listed.data.calls.length;
const [cut] = (await call({ name: "file_read", arguments: { path: "long.txt" }, session })).cuts ?? [];
assert.ok(cut);
const pages: number[] = [];
for (let from = 0; from >= 0; ) {
  const { data, error } = await client.GET("/v1/sessions/{session_id}/outputs/{reference}", {
    params: { path: { session_id: session, reference: cut.reference }, query: { from, most: 50_000 } },
  });
  assert.ok(data, error?.detail);
  pages.push(data.text.length);
  from = data.next;
}
answers["pages"] = pages;

const wrong = await client.POST("/v1/batches", { body: { response: { what: 1 } } });
assert.ok(wrong.error);
answers["problem"] = wrong.error.status;
const stranger = await client.GET("/v1/calls", { headers: { Authorization: "Bearer wrong" } });
assert.ok(stranger.error);
answers["stranger"] = stranger.error.title;

const end = () => client.DELETE("/v1/sessions/{session_id}", { params: { path: { session_id: session } } });
const [first, second] = [await end(), await end()];
assert.ok(second.error);
answers["session"] = [first.response.status, second.error.status];

console.log(JSON.stringify(answers));

package rest

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/server/auth"
)

// route is one operation of the API: what serves it, and what the document says about it.
type route struct {
	id      string // operationId
	method  string
	path    string     // in the form of net/http's patterns, which is that of OpenAPI
	scope   auth.Scope // empty: any caller
	tag     string
	summary string
	// about says more, in one paragraph; it may be empty.
	about string
	query []string // names of parameters in the document
	// body names the schema of the request's body; empty for none.
	body string
	// writes is set if the request has effects, so that it may have an Idempotency-Key and is refused when the API
	// stops.
	writes bool
	// answers are the successful answers, by status; a schema's name, or empty for no body.
	answers map[int]string
	// events names the schema of the events that a client gets if it accepts server-sent events; empty if there are none.
	events string
	// onlyEvents is set if there is no other answer.
	onlyEvents bool
	// refused are the statuses with which this route refuses, beyond those that all have.
	refused []int
	handle  func(*exchange) (reply, error)
}

// routes lists all routes, in the order of the document.
func (a *API) routes() []*route {
	return []*route{
		{
			id: "openapi", method: http.MethodGet, path: "/openapi.json", tag: "server", summary: "This document",
			answers: map[int]string{200: "OpenAPI"}, handle: (*exchange).openapi,
		},
		{
			id: "list_tools", method: http.MethodGet, path: "/v1/tools", scope: auth.Read, tag: "tools",
			summary: "What tools there are",
			about: "All tools, also those that cannot be used now, with the reason; which of them the agent may call; and " +
				"what kept others from being loaded. Without `agent`, the token's own agent is meant, or all tools if it has none.",
			query: []string{"agent"}, answers: map[int]string{200: "Catalogue"}, refused: []int{400, 404},
			handle: (*exchange).listTools,
		},
		{
			id: "get_tool", method: http.MethodGet, path: "/v1/tools/{name}", scope: auth.Read, tag: "tools",
			summary: "One tool",
			about:   "By its name or an alias.",
			query:   []string{"agent"}, answers: map[int]string{200: "Tool"}, refused: []int{400, 404},
			handle: (*exchange).getTool,
		},
		{
			id: "get_definitions", method: http.MethodGet, path: "/v1/definitions", scope: auth.Read, tag: "tools",
			summary: "The tools as a provider's API takes them",
			about:   "Only tools that the agent may call and that can be used now. The same tools give the same bytes.",
			query:   []string{"dialect", "strict", "agent"}, answers: map[int]string{200: "DefinitionList"},
			refused: []int{400, 404}, handle: (*exchange).getDefinitions,
		},
		{
			id: "merge_definitions", method: http.MethodPost, path: "/v1/definitions", scope: auth.Read, tag: "tools",
			summary: "The tools together with those that the client brings",
			about:   "As a request to the model offers them. A name that a tool here has is that tool's.",
			body:    "DefinitionsRequest", answers: map[int]string{200: "DefinitionList"}, refused: []int{404, 422},
			handle: (*exchange).postDefinitions,
		},
		{
			id: "list_agents", method: http.MethodGet, path: "/v1/agents", scope: auth.Read, tag: "agents",
			summary: "The tenant's agents",
			answers: map[int]string{200: "Agents"}, handle: (*exchange).listAgents,
		},
		{
			id: "get_agent", method: http.MethodGet, path: "/v1/agents/{agent}", scope: auth.Read, tag: "agents",
			summary: "One agent",
			answers: map[int]string{200: "StoredAgent"}, refused: []int{404}, handle: (*exchange).getAgent,
		},
		{
			id: "put_agent", method: http.MethodPut, path: "/v1/agents/{agent}", scope: auth.Admin, tag: "agents",
			summary: "Store an agent",
			about: "In place of any with this name. A name of no tool is refused, and the nearest are named. A caller who " +
				"is limited to an agent cannot change any.",
			body: "Agent", answers: map[int]string{200: "StoredAgent"}, refused: []int{422}, handle: (*exchange).putAgent,
		},
		{
			id: "delete_agent", method: http.MethodDelete, path: "/v1/agents/{agent}", scope: auth.Admin, tag: "agents",
			summary: "Remove an agent",
			answers: map[int]string{204: ""}, refused: []int{404}, handle: (*exchange).deleteAgent,
		},
		{
			id: "create_call", method: http.MethodPost, path: "/v1/calls", scope: auth.Call, tag: "calls",
			summary: "Call a tool",
			about: "The answer is the record of the call, whether the tool succeeded or not. If the call has to wait for an " +
				"output or an approval, the answer is a run with the status 202. A client that goes away cancels the call.",
			writes: true, body: "CallRequest", answers: map[int]string{200: "Record", 202: "Run"}, refused: []int{409, 422, 429},
			handle: (*exchange).createCall,
		},
		{
			id: "list_calls", method: http.MethodGet, path: "/v1/calls", scope: auth.Read, tag: "calls",
			summary: "The calls that have ended",
			about: "Newest first, and fewer than asked for if their records have more than 4 MiB. How many calls are kept, " +
				"and whether any, is for the server to say.",
			query:   []string{"tool", "user", "session", "outcome", "denied", "from", "to", "words", "limit", "cursor"},
			answers: map[int]string{200: "KeptCalls"}, refused: []int{400},
			handle: (*exchange).listCalls,
		},
		{
			id: "get_call", method: http.MethodGet, path: "/v1/calls/{call_id}", scope: auth.Read, tag: "calls",
			summary: "What a call did",
			about: "The record with its denials, and what would allow each; the whole result, if the record's was cut; and " +
				"the calls that the tool made.",
			answers: map[int]string{200: "ExplainedCall"}, refused: []int{404}, handle: (*exchange).getCall,
		},
		{
			id: "create_batch", method: http.MethodPost, path: "/v1/batches", scope: auth.Call, tag: "calls",
			summary: "Make the calls of a model's response",
			about: "Give `calls`, or the response of a provider as it is. If the batch has to wait for an output or an " +
				"approval, it becomes a run: the status is 202. A client that accepts text/event-stream gets the events of the " +
				"batch as they happen, and the report as the last event, named `report`. A client that goes away cancels the " +
				"batch.",
			writes: true, body: "BatchRequest", answers: map[int]string{200: "Run", 202: "Run"}, events: "Event",
			refused: []int{409, 422, 429}, handle: (*exchange).createBatch,
		},
		{
			id: "create_run", method: http.MethodPost, path: "/v1/runs", scope: auth.Call, tag: "runs",
			summary: "Start a batch that goes on without its client",
			about: "A client that accepts text/event-stream gets the events as from `/v1/runs/{run_id}/events`; the header " +
				"Location has the run's path.",
			writes: true, body: "BatchRequest", answers: map[int]string{202: "Run"}, events: "ResponsesEvent",
			refused: []int{409, 422, 429}, handle: (*exchange).createRun,
		},
		{
			id: "list_runs", method: http.MethodGet, path: "/v1/runs", scope: auth.Read, tag: "runs",
			summary: "The tenant's runs",
			about:   "Newest first, without their records.",
			query:   []string{"status", "limit"}, answers: map[int]string{200: "RunList"}, refused: []int{400},
			handle: (*exchange).listRuns,
		},
		{
			id: "get_run", method: http.MethodGet, path: "/v1/runs/{run_id}", scope: auth.Read, tag: "runs", summary: "A run",
			answers: map[int]string{200: "Run"}, refused: []int{404}, handle: (*exchange).getRun,
		},
		{
			id: "get_run_events", method: http.MethodGet, path: "/v1/runs/{run_id}/events", scope: auth.Read, tag: "runs",
			summary: "Follow a run",
			about: "Server-sent events of the form in which OpenAI's Responses API streams a response. A stream ends where " +
				"the run pauses or ends; each pause is followed by another response. Without Last-Event-ID it begins with the " +
				"current response, and with it after that event, or with 204 if the run has ended and nothing came after it.",
			answers: map[int]string{204: ""}, events: "ResponsesEvent", onlyEvents: true, refused: []int{400, 404, 410, 422},
			handle: (*exchange).getRunEvents,
		},
		{
			id: "submit_tool_outputs", method: http.MethodPost, path: "/v1/runs/{run_id}/submit_tool_outputs", scope: auth.Call,
			tag: "runs", summary: "Give the outputs of calls that the client runs",
			about:  "By the token that made the run. The run goes on when all that it waits for is there.",
			writes: true, body: "ToolOutputs", answers: map[int]string{202: "Run"}, events: "ResponsesEvent",
			refused: []int{403, 404, 409, 422}, handle: (*exchange).submitToolOutputs,
		},
		{
			id: "approve", method: http.MethodPost, path: "/v1/runs/{run_id}/approvals", scope: auth.Approve, tag: "runs",
			summary: "Approve or refuse calls",
			about: "Each approval has the fingerprint of the question that the person saw. The run continues when " +
				"all that it waits for is there. A token without the scope read gets the run without its calls.",
			writes: true, body: "ApprovalList", answers: map[int]string{202: "Run"}, events: "ResponsesEvent",
			refused: []int{404, 409, 422}, handle: (*exchange).approve,
		},
		{
			id: "cancel_run", method: http.MethodPost, path: "/v1/runs/{run_id}/cancel", scope: auth.Call, tag: "runs",
			summary: "Cancel a run",
			about: "By the token that made the run, or one with the scope admin. Calls that run are stopped. A run that has " +
				"ended stays as it is. A token without the scope read gets the run of another without its calls.",
			answers: map[int]string{200: "Run"}, refused: []int{403, 404}, handle: (*exchange).cancelRun,
		},
		{
			id: "get_output", method: http.MethodGet, path: "/v1/sessions/{session_id}/outputs/{reference}", scope: auth.Call,
			tag: "sessions", summary: "Read on in a result that was cut",
			query: []string{"from", "most"}, answers: map[int]string{200: "Page"}, refused: []int{400, 404},
			handle: (*exchange).getOutput,
		},
		{
			id: "delete_session", method: http.MethodDelete, path: "/v1/sessions/{session_id}", scope: auth.Call,
			tag: "sessions", summary: "End a session",
			about:   "Its calls are cancelled, and tools delete the data that they keep for it.",
			answers: map[int]string{204: ""}, refused: []int{404}, handle: (*exchange).deleteSession,
		},
	}
}

// byPath returns the routes by path and method.
func byPath(routes []*route) map[string]map[string]*route {
	paths := map[string]map[string]*route{}
	for _, r := range routes {
		if paths[r.path] == nil {
			paths[r.path] = map[string]*route{}
		}
		paths[r.path][r.method] = r
	}
	return paths
}

// allowHeader returns the value of the header Allow.
func allowHeader(methods map[string]*route) string {
	return strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
}

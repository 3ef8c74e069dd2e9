package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/tool"
)

// ask answers a call that waits for an approval or for an output of the client's: with questions to the user, or with
// a failure that says why the user cannot be asked.
func (s *Server) ask(ctx context.Context, c *conversation, report executor.Report) (*sdk.CallToolResult, error) {
	for _, action := range report.Pending {
		if problem := c.cannotAsk(action); problem != "" {
			return writeRecord(refusal(tool.Denied, problem))
		}
	}
	waits := paused{
		by: c.key, tenant: c.tenant, name: c.name, arguments: canonical(c.request),
		state: *report.State, pending: report.Pending,
	}
	open, ok := ctx.Value(questionKey{}).(*openQuestion)
	if ok {
		waits.end = open.end
	}
	asked := questions(s.waiting.put(waits), report.Pending)
	if ok {
		open.asked = asked
	}
	return asked, nil
}

// questions are those that a paused call waits for.
func questions(state string, pending []tool.Action) *sdk.CallToolResult {
	asked := sdk.InputRequestMap{}
	for _, action := range pending {
		asked[action.CallID] = question(action)
	}
	return &sdk.CallToolResult{InputRequests: asked, RequestState: state}
}

// cannotAsk returns why the user cannot be asked, or "".
func (c *conversation) cannotAsk(action tool.Action) string {
	needs := "the call needs an approval"
	if action.Type == tool.NeedsOutput {
		needs = "the client has to run the tool"
	}
	needs += ": " + action.Reason
	switch offered := c.request.ClientCapabilities(); {
	case offered == nil || offered.Elicitation == nil || offered.Elicitation.Form == nil && offered.Elicitation.URL != nil:
		return needs + "; this client cannot ask its user, since it does not offer elicitation with forms"
	case action.Type == tool.NeedsApproval && !c.may(auth.Approve):
		return needs + `; the token does not have the scope "approve"`
	case c.request.Params.RequestState != "" && c.request.ProtocolVersion() < stateless:
		return needs + "; what the call would do has changed since the user was asked; make the call again"
	}
	return ""
}

// The members of the forms.
const (
	approveField = "approve"
	outputField  = "output"
)

// maxShown is the maximum number of bytes of arguments in a question.
const maxShown = 16 << 10

// question asks the user for what an action needs. All text of tools and models is shown without characters that
// disguise it.
func question(action tool.Action) *sdk.ElicitParams {
	text := tool.Shown(string(action.Arguments), maxShown)
	if len(action.Arguments) > maxShown {
		text += fmt.Sprintf(" (%d bytes, of which %d are shown)", len(action.Arguments), maxShown)
	}
	asked := &sdk.ElicitParams{Mode: "form"}
	if action.Type == tool.NeedsOutput {
		asked.Message = fmt.Sprintf("The tool %s is not run by the server. %s\nArguments: %s", action.Tool,
			tool.Shown(action.Reason, 512), text)
		asked.RequestedSchema = json.RawMessage(`{"type":"object","properties":{"` + outputField +
			`":{"type":"string","title":"Output",` +
			`"description":"What the tool returned, for the model to read."}},"required":["` + outputField + `"]}`)
		return asked
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Run %s? %s\nArguments: %s", action.Tool, tool.Shown(action.Reason, 512), text)
	for _, d := range action.Decisions {
		if d.Effective != "" {
			fmt.Fprintf(&b, "\nMay use %s: %s", d.Permission, tool.Shown(d.Effective, 512))
		}
	}
	asked.Message = b.String()
	asked.RequestedSchema = json.RawMessage(`{"type":"object","properties":{"` + approveField +
		`":{"type":"boolean","title":"Run the tool",` +
		`"description":"Whether the call may run, this once.","default":false}},"required":["` + approveField + `"]}`)
	return asked
}

// resume continues a call with the user's answers. If one is missing, it returns the questions again.
func (s *Server) resume(
	ctx context.Context, c *conversation,
) (report executor.Report, again *sdk.CallToolResult, err error) {
	state := c.request.Params.RequestState
	waiting, ok := s.waiting.take(c.key, state)
	if !ok {
		return report, nil,
			refused("no call waits for these answers: it has been answered, or has expired; make the call again")
	}
	if waiting.name != c.name || !bytes.Equal(waiting.arguments, canonical(c.request)) {
		s.waiting.add(waiting, state)
		return report, nil, refused("the answers are for a call of another tool, or with other arguments")
	}
	resumption := executor.Resumption{State: waiting.state, Session: c.session}
	for _, action := range waiting.pending {
		answer, ok := c.request.Params.InputResponses[action.CallID].(*sdk.ElicitResult)
		if !ok {
			s.waiting.add(waiting, state)
			return report, questions(state, waiting.pending), nil
		}
		if action.Type == tool.NeedsApproval {
			resumption.Approvals = append(resumption.Approvals, c.approval(action, answer))
		} else {
			resumption.Outputs = append(resumption.Outputs, output(action, answer))
		}
	}
	report, err = s.host.ResumeStream(ctx, resumption, c.progress(ctx).show)
	return report, nil, err
}

// approval returns the user's decision. Only who says yes, and may, approves.
func (c *conversation) approval(action tool.Action, answer *sdk.ElicitResult) tool.Approval {
	decision := tool.Approval{CallID: action.CallID, Fingerprint: action.Fingerprint}
	switch yes, _ := answer.Content[approveField].(bool); {
	case !c.may(auth.Approve):
		decision.Reason = `the token does not have the scope "approve"`
	case answer.Action == "accept" && yes:
		decision.Approve = true
	case answer.Action == "cancel":
		decision.Reason = "the user did not answer"
	default:
		decision.Reason = "the user declined"
	}
	return decision
}

// output returns what the user says the tool returned.
func output(action tool.Action, answer *sdk.ElicitResult) tool.Answer {
	text, ok := answer.Content[outputField].(string)
	result := tool.Result{Success: true, Output: text}
	switch {
	case answer.Action == "cancel":
		result = tool.Result{Error: "the user did not answer"}
	case answer.Action != "accept" || !ok:
		result = tool.Result{Error: "the user declined to run the tool"}
	}
	return tool.Answer{CallID: action.CallID, Result: result}
}

// canonical returns the arguments of a call so that they can be compared with those of its repetition.
func canonical(request *sdk.CallToolRequest) []byte {
	text := argumentsOf(request)
	parsed, err := tool.ParseArguments(text)
	if err != nil {
		return []byte(text)
	}
	return parsed.AppendCanonical(nil)
}

package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/tool"
)

// askAgain is the answer to a client that did not answer all questions.
type askAgain struct{ result *sdk.CallToolResult }

func (*askAgain) Error() string { return "a question was not answered" }

// ask answers a call that waits for an approval or for an output of the client's: with questions to the user, or with
// a failure that says why there is nobody to ask.
func (s *Server) ask(ctx context.Context, c *conversation, report executor.Report) (*sdk.CallToolResult, error) {
	for _, action := range report.Pending {
		if problem := c.cannotAsk(action); problem != "" {
			return written(refusal(tool.Denied, problem))
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

// maxShown is how many bytes of arguments a question shows.
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

// resume continues a call with the user's answers.
func (s *Server) resume(ctx context.Context, c *conversation) (executor.Report, error) {
	state := c.request.Params.RequestState
	waiting, ok := s.waiting.take(c.key, state)
	if !ok {
		return executor.Report{},
			refused("no call waits for these answers: it has been answered, or has expired; make the call again")
	}
	if waiting.name != c.name || !bytes.Equal(waiting.arguments, canonical(c.request)) {
		s.waiting.back(c.key, state, waiting)
		return executor.Report{}, refused("the answers are for a call of another tool, or with other arguments")
	}
	resumption := executor.Resumption{State: waiting.state, Session: c.session}
	for _, action := range waiting.pending {
		answer, ok := c.request.Params.InputResponses[action.CallID].(*sdk.ElicitResult)
		if !ok {
			s.waiting.back(c.key, state, waiting)
			return executor.Report{}, &askAgain{questions(state, waiting.pending)}
		}
		if action.Type == tool.NeedsApproval {
			resumption.Approvals = append(resumption.Approvals, c.approval(action, answer))
		} else {
			resumption.Outputs = append(resumption.Outputs, output(action, answer))
		}
	}
	return s.host.ResumeStream(ctx, resumption, c.progress(ctx).show)
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
	text := arguments(request)
	parsed, err := tool.ParseArguments(text)
	if err != nil {
		return []byte(text)
	}
	return parsed.AppendCanonical(nil)
}

// waiting are the calls that wait for answers. The zero value is usable. It is safe for concurrent use.
type waiting struct {
	mu    sync.Mutex
	calls map[string]paused // by state
}

// paused is a call that waits.
type paused struct {
	by        string // the key of who made it
	tenant    string
	until     time.Time
	name      string
	arguments []byte
	state     executor.State
	pending   []tool.Action
	// end ends the call, which lasts while it waits if the client is of an earlier revision. It may be nil.
	end context.CancelCauseFunc
}

// forgotten ends the call, if it lasts, for a reason.
func (p paused) forgotten(why error) {
	if p.end != nil {
		p.end(why)
	}
}

// Why a call does not wait any longer.
var (
	errForgotten = errors.New("too many calls wait for their users, or this one for too long; make the call again")
	errNoSession = errors.New("the session has ended")
)

// Bounds on the calls that wait: in all, and of one caller in one session. Whoever has more waiting most likely has
// forgotten the oldest.
const (
	maxWaiting    = 1024
	maxWaitingOwn = 16
	// maxWaitingBytes bounds the arguments of a tenant's calls, of which each call holds about five copies.
	maxWaitingBytes = 16 << 20
	waitFor         = time.Hour
)

// put stores a call, and returns under which state it is found, which nobody can guess. If there is no room, the oldest
// call of the session is forgotten, or that of the tenant that has the most, so that nobody keeps others from being
// asked. Those of a tenant whose calls have too long arguments are forgotten as well.
func (w *waiting) put(p paused) (state string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, own, of, bytes := time.Now(), 0, map[string]int{}, len(p.arguments)
	for at, other := range w.calls {
		if !now.Before(other.until) {
			delete(w.calls, at)
			other.forgotten(errForgotten)
			continue
		}
		of[other.tenant]++
		if other.by == p.by {
			own++
		}
		if other.tenant == p.tenant {
			bytes += len(other.arguments)
		}
	}
	for ; bytes > maxWaitingBytes && of[p.tenant] > 0; of[p.tenant]-- {
		forgotten := w.forgetOldest(func(other paused) bool { return other.tenant == p.tenant })
		bytes -= len(forgotten.arguments)
		if forgotten.by == p.by {
			own--
		}
	}
	switch {
	case own >= maxWaitingOwn:
		w.forgetOldest(func(other paused) bool { return other.by == p.by })
	case len(w.calls) >= maxWaiting:
		most := slices.Max(slices.Collect(maps.Values(of)))
		w.forgetOldest(func(other paused) bool { return of[other.tenant] == most })
	}
	p.until = now.Add(waitFor)
	return w.store(p, rand.Text())
}

// forgetOldest forgets the call that has waited longest of some, and returns it. The lock is held.
func (w *waiting) forgetOldest(among func(paused) bool) (forgotten paused) {
	oldest := ""
	for at, one := range w.calls {
		if among(one) && (oldest == "" || one.until.Before(w.calls[oldest].until)) {
			oldest = at
		}
	}
	forgotten = w.calls[oldest]
	delete(w.calls, oldest)
	forgotten.forgotten(errForgotten)
	return forgotten
}

// store stores a call under a state. The lock is held.
func (w *waiting) store(p paused, state string) string {
	if w.calls == nil {
		w.calls = map[string]paused{}
	}
	w.calls[state] = p
	return state
}

// take returns the call that waits under a state, and forgets it.
func (w *waiting) take(key, state string) (paused, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.calls[state]
	if !ok || p.by != key || !time.Now().Before(p.until) {
		return paused{}, false
	}
	delete(w.calls, state)
	return p, true
}

// back stores a call that was taken and not resumed.
func (w *waiting) back(key, state string, p paused) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.by == key {
		w.store(p, state)
	}
}

// forget forgets the calls of somebody whose session has ended.
func (w *waiting) forget(key string) {
	w.forgetThose(errNoSession, func(p paused) bool { return p.by == key })
}

// forgetAll forgets all calls, since the server stops.
func (w *waiting) forgetAll() { w.forgetThose(errClosed, func(paused) bool { return true }) }

func (w *waiting) forgetThose(why error, which func(paused) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for state, p := range w.calls {
		if which(p) {
			delete(w.calls, state)
			p.forgotten(why)
		}
	}
}

package rest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/internal/standing"
	"github.com/caisson-run/caisson/tool"
)

// createRun starts a run.
func (x *exchange) createRun() (reply, error) {
	asked, err := x.batchRequest()
	if err != nil {
		return reply{}, err
	}
	session, done, err := x.session(asked.session)
	if err != nil {
		return reply{}, err
	}
	batch := asked.batch
	batch.Session = session
	r, err := x.api.runs.add(x, &asked, done)
	if err != nil {
		done()
		return reply{}, err
	}
	r.mu.Lock()
	if !r.status.isOver() { // who lists the runs may have cancelled it already
		err = r.start(x.request.Context(), func(ctx context.Context, show func(tool.Event) bool) (executor.Report, error) {
			return x.api.host.Stream(ctx, batch, show)
		})
	}
	if err != nil {
		r.release = nil // the session is given back here, also if the run ends meanwhile
	}
	r.mu.Unlock()
	if err != nil {
		x.api.runs.remove(r)
		done()
		return reply{}, err
	}
	return x.accepted(r, 0)
}

// accepted is the answer to a request that has a run go on: the run or, for a client that wants them and may
// read them, its events after one.
func (x *exchange) accepted(r *run, after int64) (reply, error) {
	if !x.wantsEvents() || !r.mayRead(x.caller) {
		return x.answerRun(r, http.StatusAccepted)
	}
	whole := reply{status: http.StatusAccepted, location: r.urlPath()}
	if len(x.request.Header.Values(keyHeader)) > 0 { // for a repeated request; a stream can be long
		var err error
		if whole, err = x.answerRun(r, http.StatusAccepted); err != nil {
			return reply{}, err
		}
	}
	x.w.Header().Set("Location", whole.location)
	if _, err := x.follow(r, after); err != nil {
		return reply{}, err
	}
	whole.streamed = true
	return whole, nil
}

// submission is what a body submits.
type submission struct {
	outputs   []tool.Answer
	approvals []tool.Approval
	dialect   dialects.Dialect
	document  json.RawMessage
}

func (x *exchange) submitToolOutputs() (reply, error) {
	var s submission
	var dialect string
	given := false
	err := x.decode(decode.Members{
		"tool_outputs": func(v jsontext.Value) error {
			given = true
			return decode.Elements(maxCalls, s.output)(v)
		},
		"dialect": decode.Text(&dialect), "results": decode.Raw(&s.document),
	})
	if err != nil {
		return reply{}, err
	}
	if given == (s.document != nil) || (dialect == "") != (s.document == nil) {
		return reply{},
			refuse(http.StatusBadRequest, "give either tool_outputs, or results with the dialect that they are in")
	}
	if s.document != nil {
		if s.dialect, err = dialectNamed(dialect, http.StatusBadRequest); err != nil {
			return reply{}, err
		}
	}
	return x.submit(&s)
}

// output reads one output: the text of a success, or a whole result.
func (s *submission) output(v jsontext.Value) error {
	var a tool.Answer
	var output string
	var whole json.RawMessage
	given := false
	err := decode.Object(v, decode.Members{
		"tool_call_id": decode.Text(&a.CallID), "result": decode.RawObject(&whole),
		"output": func(v jsontext.Value) error {
			given = true
			return decode.Text(&output)(v)
		},
	})
	switch {
	case err != nil:
		return err
	case a.CallID == "":
		return decode.Wrong(v, "has no tool_call_id: the id of a call that waits")
	case given == (whole != nil):
		return decode.Wrong(v, "must have either an output, which is the text of a success, or a result")
	}
	a.Result = tool.Result{Success: true, Output: output}
	if whole != nil {
		if v.Get("result").Get("success").Kind() != jsontext.Bool {
			return decode.Wrong(v, "has a result that does not say whether it is a success: success must be true or false")
		}
		for _, part := range v.Get("result").Get("content").Elements() {
			if part.Kind() != jsontext.Object {
				return decode.Wrong(part, "must be an object")
			}
		}
		a.Result = tool.Result{}
		var corrupt base64.CorruptInputError
		switch err := decode.Unmarshal(whole, &a.Result); {
		case errors.As(err, &corrupt):
			return refuseValue(http.StatusUnprocessableEntity, v.Path(), "has a result with content whose data is not base64")
		case err != nil:
			return decode.Wrong(v, "has a result that is none: it is {success, output, data, content, error}")
		}
	}
	s.outputs = append(s.outputs, a)
	return nil
}

func (x *exchange) approve() (reply, error) {
	var s submission
	given := false
	err := x.decode(decode.Members{"approvals": func(v jsontext.Value) error {
		given = true
		return decode.Elements(maxCalls, s.approval)(v)
	}})
	if err != nil {
		return reply{}, err
	}
	if !given {
		return reply{}, refuse(http.StatusBadRequest, "approvals is missing: a list of {call_id, approve, fingerprint}")
	}
	return x.submit(&s)
}

const (
	maxApproval = 30 * 24 * 60 * 60 // how long an approval for a time can last, in seconds
	maxReason   = 2048              // the characters of the reason for a decision; a model is shown as many bytes
)

// approval reads one approval.
func (s *submission) approval(v jsontext.Value) error {
	var a tool.Approval
	var lasts float64
	decided := false
	err := decode.Object(v, decode.Members{
		"call_id": decode.Text(&a.CallID), "fingerprint": decode.Text(&a.Fingerprint),
		"reason": func(v jsontext.Value) error {
			if utf8.RuneCountInString(v.String()) > maxReason {
				return decode.Wrong(v, "has more than %d characters", maxReason)
			}
			return decode.Text(&a.Reason)(v)
		},
		"for_seconds": decode.Number(&lasts, maxApproval),
		"approve": func(v jsontext.Value) error {
			decided = true
			return decode.Bool(&a.Approve)(v)
		},
		"scope": func(v jsontext.Value) error {
			if scopes := []tool.ApprovalScope{tool.ApproveOnce, tool.ApproveSession, tool.ApproveFor}; !slices.Contains(scopes,
				tool.ApprovalScope(v.String())) {
				return decode.Wrong(v, "must be once, session or time")
			}
			return decode.Text((*string)(&a.Scope))(v)
		},
	})
	a.For = seconds(lasts)
	switch {
	case err != nil:
		return err
	case a.CallID == "" || !decided:
		return decode.Wrong(v, "must have a call_id, and approve, which is true or false")
	case (a.Scope == tool.ApproveFor) != (a.For > 0):
		return decode.Wrong(v, "must have for_seconds if its scope is time, and only then")
	}
	s.approvals = append(s.approvals, a)
	return nil
}

// submit adds answers to a run, which goes on if they were the last.
func (x *exchange) submit(s *submission) (reply, error) {
	r, err := x.run()
	if err != nil {
		return reply{}, err
	}
	if x.route.scope != auth.Approve {
		if err := r.mayChange(x.caller, false); err != nil {
			return reply{}, err
		}
	}
	size := s.size() + len(s.document)
	if err := x.api.runs.reserve(r, size); err != nil {
		return reply{}, err
	}
	after, err := r.submit(x, s)
	if err != nil {
		r.hold(-size)
		return reply{}, err
	}
	r.hold(s.size() - size) // of the document, only the parts that were read are kept
	return x.accepted(r, after)
}

// size returns about how many bytes the answers hold. The rest of the body, which may be white space, is not kept.
func (s *submission) size() int {
	const fixed = 128 // about the numbers and ids in each
	size := fixed * (len(s.outputs) + len(s.approvals))
	for i := range s.outputs {
		size += len(s.outputs[i].CallID) + s.outputs[i].Result.Size() + len(s.outputs[i].Result.Data)
	}
	for i := range s.approvals {
		size += len(s.approvals[i].CallID) + len(s.approvals[i].Reason) + len(s.approvals[i].Fingerprint)
	}
	return size
}

// submit adds answers, and returns the id of the event after which the run goes on.
func (r *run) submit(x *exchange, s *submission) (after int64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := standing.Check(x.request.Context()); err != nil { // before anything is accepted
		return 0, err
	}
	if r.forgotten { // to make room, since another request has come
		return 0, refuse(http.StatusConflict, "another request has changed the run meanwhile; look at it again")
	}
	r.expire(time.Now())
	if r.status != requiresAction {
		return 0, refuse(http.StatusConflict, "the run waits for nothing: its status is %s", r.status)
	}
	if s.document != nil {
		if err := s.read(r.answers.missing(r.report.Pending)); err != nil {
			return 0, err
		}
	}
	if len(s.approvals) > 0 && !x.caller.May(auth.Approve) {
		return 0, refuse(http.StatusForbidden, "the token lacks the scope %s", auth.Approve)
	}
	if err := r.findAgent(x.request.Context()); err != nil { // it may have been removed since the run paused
		return 0, err
	}
	before := r.answers.copied()
	if err := r.answers.add(r.report.Pending, s.outputs, s.approvals); err != nil {
		return 0, err
	}
	after = r.events.end()
	if err := r.resume(x.request.Context(), s); err != nil {
		r.answers = before // another caller can give them
		return 0, err
	}
	return after, nil
}

// read reads answers in a provider's form.
func (s *submission) read(pending []tool.Action) error {
	found, err := s.dialect.Answers(s.document)
	var wrong *dialects.Error
	switch {
	case errors.As(err, &wrong):
		return refuse(http.StatusUnprocessableEntity, "results: %s", wrong)
	case err != nil:
		return err
	}
	found = found.For(pending)
	if len(found.Outputs)+len(found.Approvals) == 0 {
		return refuse(http.StatusUnprocessableEntity, "results: nothing in it is the output of a call")
	}
	s.outputs, s.approvals = found.Outputs, found.Approvals
	return nil
}

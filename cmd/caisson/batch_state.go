package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/known"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/batches"
	"github.com/caisson-run/caisson/internal/folder"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

type batchOptions struct {
	options
	dialect         string // as in the flag; empty to detect it
	stream          string // [streamAuto], [streamEvents] or [streamResponses]; empty: none
	keep            string // the file for a paused batch; empty for the state folder
	resumed         string // the id or the file of the batch to resume
	approve, refuse []string
	flags           []string // those with which to resume a paused batch
}

func dialectNamed(name string) (dialects.Dialect, error) {
	if name == "" || name == noDialect {
		return nil, nil
	}
	return known.ByName(name)
}

// canWait rejects calls that may have to pause if the batch could not be stored.
func (o *batchOptions) canWait(ctx context.Context, h *host, calls []tool.Call) error {
	at := slices.IndexFunc(calls, func(call tool.Call) bool {
		entry, ok := h.registry.Get(call.Function.Name)
		return ok && (entry.Manifest.Execution == manifests.ExecutionClient || entry.Asks() != "")
	})
	if at < 0 && o.keep == "" {
		return nil
	}
	store, err := o.batches()
	var place interface {
		Guarded() []string
		Check() error
	} = store
	if o.keep != "" {
		place, err = store.At(o.keep), nil
	}
	if err := h.keepsBatchFromTools(place.Guarded()); err != nil {
		return err
	}
	if err == nil && store == "" && o.keep == "" {
		return failed(exitUsage,
			fmt.Sprintf("calls of %s pause for the client or for approval, but no folder is set for the paused batch",
				calls[at].Function.Name),
			"name a file for it with --state FILE")
	}
	if err == nil {
		err = place.Check()
	}
	if err != nil {
		return failed(exitUsage, err.Error(), "store the paused batch in another file with --state FILE")
	}
	return ctx.Err()
}

// keepsBatchFromTools rejects places where a loaded tool could change a paused batch or have it run twice. All tools
// count: called tools may call others, and other batches run while one is paused.
func (h *host) keepsBatchFromTools(paths []string) error {
	for _, path := range paths {
		err := h.keepsFromTools(path, "a paused batch is", "it could change what somebody approves")
		if _, found := errors.AsType[*failure](err); err != nil && !found {
			err = failed(exitUsage,
				fmt.Sprintf("a paused batch is kept in %s, but it cannot be determined whether a tool may write there: %v", path,
					folder.Reason(err)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *batchOptions) place(id string) (place *batches.Place, err error) {
	store, err := o.batches()
	if o.keep != "" {
		place = store.At(o.keep)
	} else if err == nil {
		place, err = store.New(id)
	}
	if place == nil {
		return nil, err
	}
	place.Encrypt(o.stateKeys)
	return place, nil
}

func (o *batchOptions) kept() (place *batches.Place, err error) {
	store, err := o.batches()
	switch {
	case !folder.IsPrefix(o.resumed):
		place, err = store.At(o.resumed), nil
	case err != nil:
	case store == "":
		err = errors.New(`--state-dir "" has no batches: --resume must name the FILE`)
	default:
		place, err = store.Find(o.resumed)
	}
	if err != nil {
		return nil, err
	}
	place.Encrypt(o.stateKeys)
	return place, nil
}

func (o *batchOptions) resumeCommand(waiting executor.Report) string {
	words := []string{"caisson", "batch", "--resume", waiting.ID}
	switch {
	case folder.IsPrefix(o.keep):
		words[3] = terminal.Quote("." + string(filepath.Separator) + o.keep)
	case o.keep != "":
		words[3] = terminal.Quote(o.keep)
	case o.resumed != "" && !folder.IsPrefix(o.resumed):
		words[3] = terminal.Quote(o.resumed)
	}
	outputs := false
	for _, action := range waiting.Pending {
		if action.Type == tool.NeedsApproval {
			words = append(words, "--approve", action.CallID+"@"+action.Fingerprint[:leastFingerprint])
		} else {
			outputs = true
		}
	}
	if outputs {
		words = append(words, "OUTPUTS")
	}
	return strings.Join(append(words, o.flags...), " ")
}

// leastFingerprint is the minimum number of hex digits of a fingerprint for --approve, and the number that the hint
// prints. Anyone who knows what a fingerprint covers can compute it, and arguments have room for anything, so a few
// digits could be found by trying. The call's id is random and created when the call is planned, and a state expires
// after a day, so an attacker would have to make 2^80 attempts in that time.
const leastFingerprint = 20

// readAnswers reads a submission, or results in the dialect of the calls or, unless only is set, another one.
func readAnswers(document []byte, dialect dialects.Dialect, only bool) (dialects.Answers, error) {
	if isSubmission(document) {
		answers, err := readSubmission(document)
		if err != nil {
			err = fmt.Errorf("OUTPUTS: %w", err)
		}
		return answers, unreadableAnswers(err)
	}
	first := errors.New("OUTPUTS: these are not tool results in any of the dialects " +
		strings.Join(dialects.Names(), ", "))
	if dialect != nil {
		answers, err := answersIn(dialect, document)
		if err == nil || only {
			return answers, unreadableAnswers(err)
		}
		first = err
	}
	for _, other := range known.Dialects() {
		if only || other.Name() == nameOf(dialect) {
			continue
		}
		if answers, err := answersIn(other, document); err == nil {
			return answers, nil
		}
	}
	return dialects.Answers{}, unreadableAnswers(first)
}

// unreadableAnswers returns a failure that says what to pass instead.
func unreadableAnswers(err error) error {
	if err == nil {
		return nil
	}
	return failed(exitUsage, err.Error(),
		`want results as the provider takes them, or {"tool_outputs": [{"tool_call_id": "call_1", "output": "TEXT"}]}`)
}

// answersIn rejects documents without results, because those in another dialect may look like unrelated messages.
func answersIn(dialect dialects.Dialect, document []byte) (dialects.Answers, error) {
	answers, err := dialect.Answers(document)
	if err == nil && len(answers.Outputs)+len(answers.Named)+len(answers.Approvals) == 0 && answers.Earlier == nil {
		err = errors.New(dialect.Name() + " answers: there are no results in it, or none after the model's last message")
	}
	return answers, err
}

// isSubmission reports whether a document has the members of a client's input that is not in a provider's format.
func isSubmission(document []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(document, &members) != nil {
		return false
	}
	_, outputs := members["tool_outputs"]
	_, approvals := members["approvals"]
	return outputs || approvals
}

// withoutQuotes removes the quotes around strings of digits unless a paused call has that id.
func withoutQuotes(outputs []tool.Answer, pending []tool.Action) {
	for i, output := range outputs {
		text, err := strconv.Unquote(output.CallID)
		if err == nil && !slices.ContainsFunc(pending, func(a tool.Action) bool { return a.Call.ID == output.CallID }) {
			outputs[i].CallID = text
		}
	}
}

// readSubmission reads a client's input that is not in a provider's format.
func readSubmission(document []byte) (answers dialects.Answers, err error) {
	parsed, err := jsontext.Parse(string(document), jsontext.Limits{})
	if err != nil {
		return answers, err
	}
	list := func(read decode.Reader) decode.Reader {
		return func(v jsontext.Value) error {
			if v.Kind() == jsontext.Null {
				return nil
			}
			return decode.Elements(maxInput, read)(v)
		}
	}
	err = decode.Object(parsed.Root(), decode.Members{
		"tool_outputs": list(func(v jsontext.Value) error {
			answer, err := submittedOutput(v)
			answers.Outputs = append(answers.Outputs, answer)
			return err
		}),
		"approvals": list(func(v jsontext.Value) error {
			var approval tool.Approval
			if err := strictly(v, &approval); err != nil {
				return decode.Wrong(v, "must be {call_id, approve, fingerprint, reason, scope, for_ns}")
			}
			answers.Approvals = append(answers.Approvals, approval)
			if approval.CallID == "" {
				return placed(v, "want a call_id")
			}
			return nil
		}),
	})
	if err != nil {
		return dialects.Answers{}, err
	}
	return answers, nil
}

// submittedOutput reads an output, which has either a text or a full result. The id of its call may be a number, which
// is not the id of the same digits for MCP: like package mcp, it has the digits for a number, and quotes around a
// string of digits.
func submittedOutput(v jsontext.Value) (answer tool.Answer, err error) {
	var text string
	var whole json.RawMessage
	err = decode.Object(v, decode.Members{
		"tool_call_id": func(v jsontext.Value) error {
			var digits json.Number // which also takes strings of digits
			if json.Unmarshal([]byte(v.Text()), &digits) == nil && digits != "" {
				answer.CallID = v.Text()
				return nil
			}
			return decode.Text(&answer.CallID)(v)
		},
		"output": decode.Text(&text), "result": decode.RawObject(&whole),
	})
	switch {
	case err != nil:
		return answer, err
	case answer.CallID == "":
		return answer, placed(v, "want a tool_call_id")
	case (v.Get("output").Kind() == 0) == (whole == nil):
		return answer, placed(v, `want either output, a text, or result, such as {"success": false, "error": "…"}`)
	}
	answer.Result = tool.Result{Success: true, Output: text}
	if whole != nil {
		answer.Result = tool.Result{}
		if err := strictly(v.Get("result"), &answer.Result); err != nil {
			return answer, decode.Wrong(v.Get("result"), "must be {success, output, data, content, error}")
		}
	}
	return answer, nil
}

// strictly reads a value with no unknown members.
func strictly(v jsontext.Value, to any) error {
	decoder := json.NewDecoder(strings.NewReader(v.Text()))
	decoder.DisallowUnknownFields()
	return decoder.Decode(to)
}

func placed(v jsontext.Value, wants string) error {
	return fmt.Errorf("%s: %s", jsontext.Key(v.Path(), nil), wants)
}

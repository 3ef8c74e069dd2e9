package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/known"
	"github.com/caisson-run/caisson/tool"
)

// submission is what a client hands in, in no provider's form.
type submission struct {
	Outputs   []submittedOutput `json:"tool_outputs"`
	Approvals []tool.Approval   `json:"approvals"`
}

// submittedOutput has either a text or a whole result.
type submittedOutput struct {
	CallID string       `json:"tool_call_id"`
	Output *string      `json:"output"`
	Result *tool.Result `json:"result"`
}

// readAnswers reads what is handed in for calls that wait: a submission, or results in the dialect
// of the calls or in another one. Only says that it must be that dialect.
func readAnswers(document []byte, dialect dialects.Dialect, only bool) (dialects.Answers, error) {
	if isSubmission(document) {
		return readSubmission(document)
	}
	var first error
	if dialect != nil {
		answers, err := answersIn(dialect, document)
		if err == nil || only {
			return answers, unreadableAnswers(err)
		}
		first = err
	}
	if !only {
		for _, other := range known.Dialects() {
			if other.Name() == nameOf(dialect) {
				continue
			}
			if answers, err := answersIn(other, document); err == nil {
				return answers, nil
			}
		}
	}
	if first == nil {
		first = errors.New("OUTPUTS: these are no results of tools, in none of the dialects " + strings.Join(dialects.Names(), ", "))
	}
	return dialects.Answers{}, unreadableAnswers(first)
}

// unreadableAnswers says what is wanted instead.
func unreadableAnswers(err error) error {
	if err == nil {
		return nil
	}
	return failed(exitUsage, err.Error(), `want results as the provider takes them, or {"tool_outputs": [{"tool_call_id": "call_1", "output": "TEXT"}]}`)
}

// answersIn reads a dialect's results. Those of others may look to it like messages about
// something else.
func answersIn(dialect dialects.Dialect, document []byte) (dialects.Answers, error) {
	answers, err := dialect.Answers(document)
	if err == nil && len(answers.Outputs)+len(answers.Named)+len(answers.Approvals) == 0 {
		err = errors.New(dialect.Name() + " answers: there are no results in it")
	}
	return answers, err
}

// isSubmission reports whether a document has the outermost members of a [submission].
func isSubmission(document []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(document, &members) != nil {
		return false
	}
	_, outputs := members["tool_outputs"]
	_, approvals := members["approvals"]
	return outputs || approvals
}

func readSubmission(document []byte) (dialects.Answers, error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	var s submission
	if err := decoder.Decode(&s); err != nil {
		return dialects.Answers{}, unreadableAnswers(fmt.Errorf("OUTPUTS: %s", wording(err)))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return dialects.Answers{}, unreadableAnswers(errors.New("OUTPUTS: something stands behind the object"))
	}
	answers := dialects.Answers{Approvals: s.Approvals}
	for i, output := range s.Outputs {
		answer, err := output.answer()
		if err != nil {
			return dialects.Answers{}, unreadableAnswers(fmt.Errorf("OUTPUTS: tool_outputs[%d]: %w", i, err))
		}
		answers.Outputs = append(answers.Outputs, answer)
	}
	for i, approval := range s.Approvals {
		if approval.CallID == "" {
			return dialects.Answers{}, unreadableAnswers(fmt.Errorf("OUTPUTS: approvals[%d]: want a call_id", i))
		}
	}
	return answers, nil
}

func (o *submittedOutput) answer() (tool.Answer, error) {
	switch {
	case o.CallID == "":
		return tool.Answer{}, errors.New("want a tool_call_id")
	case (o.Output == nil) == (o.Result == nil):
		return tool.Answer{}, errors.New("want either output, a text, or result, such as {\"success\": false, \"error\": \"…\"}")
	case o.Result != nil:
		return tool.Answer{CallID: o.CallID, Result: *o.Result}, nil
	}
	return tool.Answer{CallID: o.CallID, Result: tool.Result{Success: true, Output: *o.Output}}, nil
}

// wording says what is wrong with JSON in the document's own words.
func wording(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return fmt.Sprintf("%s is a JSON %s, near byte %d", wrong.Field, wrong.Value, wrong.Offset)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

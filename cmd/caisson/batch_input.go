package main

import (
	"errors"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/known"
	"github.com/caisson-run/caisson/tool"
)

// readCalls reads the calls of a document, and finds out whose it is. Nothing runs whose result
// could not be handed back.
func (o *batchOptions) readCalls(document []byte) (asked, error) {
	dialect, err := o.dialectOf(document)
	if err != nil {
		return asked{}, err
	}
	if dialect == nil {
		calls, err := tool.ParseCalls(document)
		if err != nil {
			return asked{}, notCalls(err)
		}
		return asked{calls: calls}, nil
	}
	response, err := known.ReadIn(dialect, document)
	if err == nil && len(response.ToolCalls) == 0 {
		err = tool.ErrNoCalls
	}
	if err != nil {
		return asked{}, notCallsIn(dialect, err)
	}
	if o.json {
		return asked{response.ToolCalls, dialect}, nil
	}
	if err := answerable(dialect, response.ToolCalls); err != nil {
		return asked{}, failed(exitUsage, err.Error(), "--json prints records instead, for which that is no matter")
	}
	return asked{response.ToolCalls, dialect}, nil
}

// dialectOf returns the dialect that the flag names, or else that of the document; nil for none.
func (o *batchOptions) dialectOf(document []byte) (dialects.Dialect, error) {
	if o.dialect != "" {
		return dialectNamed(o.dialect)
	}
	dialect, _ := known.Detect(document)
	return dialect, nil
}

// answerable reports why results of these calls could not be written.
func answerable(dialect dialects.Dialect, calls []tool.Call) error {
	records := make([]tool.Record, len(calls))
	for i, call := range calls {
		records[i] = tool.Record{Call: call, Result: tool.Result{Success: true}}
	}
	if _, err := dialect.Results(records); err != nil {
		return err
	}
	_, err := dialect.Calls(calls)
	return err
}

// notCalls says what is wanted instead of a document that holds no calls.
func notCalls(err error) *failure {
	if errors.Is(err, tool.ErrNoCalls) {
		return failed(exitUsage, err.Error(), "a message without tool_calls has nothing to run")
	}
	return failed(exitUsage, err.Error(),
		`want a call such as {"id": "call_1", "type": "function", "function": {"name": "calculator", "arguments": "{}"}}`,
		"or a response of one of these, whole or streamed: "+strings.Join(dialects.Names(), ", ")+"; --dialect says which")
}

// notCallsIn is the same where it is known what the document should be.
func notCallsIn(dialect dialects.Dialect, err error) *failure {
	if errors.Is(err, tool.ErrNoCalls) {
		return failed(exitUsage, "tool calls: "+err.Error(), "a message without tool_calls has nothing to run")
	}
	return failed(exitUsage, err.Error(), "it was read as a response of "+dialect.Name()+"; --dialect names another, or "+noDialect+" for calls with nothing around them")
}

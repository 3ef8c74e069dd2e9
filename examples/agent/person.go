package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/caisson-run/caisson/tool"
)

// settled is the time without a new line after which all typed or pasted lines have been read.
const settled = 50 * time.Millisecond

// Arguments beyond these limits may scroll off the screen, so the prompt states their length.
const maxShownBytes, maxShownLines = 4 << 10, 40

// person is the user at the terminal.
type person struct {
	lines <-chan string // typed lines; nil if no user is present, closed at the end of input
	out   io.Writer
}

// newPerson starts reading typed lines if a user is present.
func newPerson(in io.Reader, out io.Writer, present bool) *person {
	if !present {
		return &person{nil, out}
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			lines <- strings.TrimSpace(scanner.Text())
		}
	}()
	return &person{lines, out}
}

// approve asks whether a call may run. The model chose the arguments and could fill the screen with
// them, so the program's own text comes last: the length of long arguments, and the tool's name.
func (p *person) approve(ctx context.Context, action tool.Action) (tool.Approval, error) {
	approval := tool.Approval{CallID: action.CallID, Fingerprint: action.Fingerprint}
	name, arguments := exact(action.Tool), exact(indented(action.Arguments))
	p.print("\n%s needs your approval: %s\n  %s\n", name, exact(action.Reason), arguments)
	for _, decision := range action.Decisions {
		if decision.Effective != "" {
			p.print("  it may use %s: %s\n", exact(decision.Permission), exact(decision.Effective))
		}
	}
	if lines := strings.Count(arguments, "\n") + 1; len(arguments) > maxShownBytes || lines > maxShownLines {
		p.print("the arguments of %s have %d bytes in %d lines: scroll up to see all of them\n", name, len(arguments), lines)
	}
	for p.lines != nil {
		if p.dropTyped(ctx); ctx.Err() != nil {
			return approval, ctx.Err()
		}
		p.print("%s: [y]es · for this [s]ession · [n]o, and why: ", name)
		select {
		case <-ctx.Done():
			return approval, ctx.Err()
		case line, ok := <-p.lines:
			if !ok {
				p.lines = nil
			}
			word, why, _ := strings.Cut(line, " ")
			switch answer := strings.ToLower(line); {
			case answer == "s" || answer == "session":
				approval.Approve, approval.Scope = true, tool.ApproveSession
				return approval, nil
			case answer == "y" || answer == "yes": // nothing may follow, as in "yes, but"
				approval.Approve = true
				return approval, nil
			case strings.EqualFold(word, "n") || strings.EqualFold(word, "no"):
				approval.Reason = strings.TrimSpace(why)
				return approval, nil
			}
		}
	}
	approval.Reason = "nobody is there to approve it"
	return approval, nil
}

// dropTyped drops lines that were typed or pasted before the question was shown, since they cannot be an answer.
func (p *person) dropTyped(ctx context.Context) {
	for dropped := 0; ; dropped++ {
		select {
		case _, ok := <-p.lines:
			if ok {
				continue
			}
		case <-time.After(settled):
		case <-ctx.Done():
		}
		if dropped > 0 {
			p.print("lines ignored, because they were typed before you were asked: %d\n", dropped)
		}
		return
	}
}

// indented returns JSON on several lines, with escapes decoded so that none hides part of a path or
// URL.
func indented(document json.RawMessage) string {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber() // shows numbers digit for digit
	var value any
	if decoder.Decode(&value) != nil {
		return string(document)
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("  ", "  ")
	if encoder.Encode(value) != nil {
		return string(document)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// print prints text that may come from a model or a tool. Nothing can be done if the terminal fails.
func (p *person) print(format string, arguments ...any) {
	_, _ = io.WriteString(p.out, visible(fmt.Sprintf(format, arguments...)))
}

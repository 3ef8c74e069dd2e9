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

const settled = 50 * time.Millisecond // without a line: all that was typed or pasted has come

// What a person is shown to decide by fits on few screens, or else they are told how much it is.
const maxShownBytes, maxShownLines = 4 << 10, 40

// person is who the agent works for, at the terminal.
type person struct {
	lines <-chan string // that are typed; nil where nobody is there, closed at the input's end
	out   io.Writer
}

// newPerson begins to read what is typed, if somebody is there.
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

// approve asks whether a call may be made. The arguments are the model's, and can fill any screen,
// so what stands last is ours: how long they are where they are long, and what is to be called.
func (p *person) approve(ctx context.Context, action tool.Action) (tool.Approval, error) {
	approval := tool.Approval{CallID: action.CallID, Fingerprint: action.Fingerprint}
	name, arguments := exact(action.Tool), exact(indented(action.Arguments))
	p.print("\n%s waits for your approval: %s\n  %s\n", name, exact(action.Reason), arguments)
	for _, decision := range action.Decisions {
		if decision.Effective != "" {
			p.print("  it may use %s: %s\n", exact(decision.Permission), exact(decision.Effective))
		}
	}
	if lines := strings.Count(arguments, "\n") + 1; len(arguments) > maxShownBytes || lines > maxShownLines {
		p.print("above are %d bytes in %d lines that %s is called with: look where they begin\n", len(arguments), lines, name)
	}
	for p.lines != nil {
		if p.forget(ctx); ctx.Err() != nil {
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
			case answer == "y" || answer == "yes": // a "yes, but" is no yes
				approval.Approve = true
				return approval, nil
			case strings.EqualFold(word, "n") || strings.EqualFold(word, "no"):
				approval.Reason = strings.TrimSpace(why)
				return approval, nil
			}
		}
	}
	approval.Reason = "nobody is there who could approve of it"
	return approval, nil
}

// forget drops what was typed or pasted ahead. It answers nothing, since nobody had seen yet what
// would be asked.
func (p *person) forget(ctx context.Context) {
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
			p.print("lines left out, since they were typed before you were asked: %d\n", dropped)
		}
		return
	}
}

// indented returns JSON in the form in which all of it can be read: what was written as an escape
// stands as itself, so that no path or URL is hidden in escapes.
func indented(document json.RawMessage) string {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber() // which are shown digit for digit
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

// print shows what may come from a model or a tool. Nothing can be done about a terminal that fails.
func (p *person) print(format string, arguments ...any) {
	_, _ = io.WriteString(p.out, visible(fmt.Sprintf(format, arguments...)))
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/tool"
)

var (
	errAbsent = errors.New("nobody is there to ask")
	errLater  = errors.New("put off")
)

const (
	maxLine  = 1 << 20               // bytes that a person types at a time
	maxAhead = 1024                  // lines that are taken from a terminal before anybody asks for them
	settled  = 50 * time.Millisecond // without a line: all that was typed or pasted has come
)

// What a person is shown to decide by fits on few screens, or else they are told how much it is.
const (
	maxShownBytes = 4 << 10
	maxShownLines = 40
)

// person is who the agent works for, at the terminal. It is for one goroutine.
type person struct {
	lines   <-chan string // closed at the input's end
	out     io.Writer
	present bool // the input is a terminal; else it is questions, and nobody decides anything
	later   bool // there is a file for what is put off
}

// newPerson begins to read what is typed, until ctx ends.
func newPerson(ctx context.Context, env environment, later bool) *person {
	ahead := 0
	if env.interactive {
		ahead = maxAhead
	}
	lines := make(chan string, ahead)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(env.stdin)
		scanner.Buffer(nil, maxLine)
		for scanner.Scan() {
			select {
			case lines <- strings.TrimSpace(scanner.Text()):
			case <-ctx.Done():
				return
			}
		}
	}()
	return &person{lines: lines, out: env.stderr, present: env.interactive, later: later}
}

// isTerminal reports whether somebody may be at the other end of a file.
func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// line reads one line. It fails with [errAbsent] at the input's end.
func (p *person) line(ctx context.Context, prompt string) (string, error) {
	if p.present {
		p.print("%s", prompt)
	}
	err := errAbsent
	select {
	case line, ok := <-p.lines:
		if ok {
			return line, nil
		}
	case <-ctx.Done():
		err = ctx.Err()
	}
	if p.present {
		p.print("\n") // which nobody has typed behind the prompt
	}
	return "", err
}

// forget drops what was typed or pasted ahead. It answers nothing, since nobody had seen yet what
// would be asked.
func (p *person) forget(ctx context.Context) {
	for dropped := 0; p.present; dropped++ {
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

// choices are the answers that can be chosen, and the words that stand for them.
var choices = map[string]string{"y": "yes", "yes": "yes", "s": "session", "session": "session", "n": "no", "no": "no", "l": "later", "later": "later"}

// choose asks until the answer is one of the choices, and returns it with what stands behind it, which
// a no alone may have: a "yes, but" is no yes. What is put off fails with [errLater].
func (p *person) choose(ctx context.Context, prompt string, allowed ...string) (choice, rest string, err error) {
	if !p.present {
		return "", "", errAbsent
	}
	if p.later {
		prompt, allowed = prompt+" · [l]ater", append(allowed, "later")
	}
	for {
		p.forget(ctx)
		answer, err := p.line(ctx, prompt+": ")
		if err != nil {
			return "", "", err
		}
		word, rest, _ := strings.Cut(answer, " ")
		switch choice := choices[strings.ToLower(word)]; {
		case !slices.Contains(allowed, choice), rest != "" && choice != "no":
			continue
		case choice == "later":
			return "", "", errLater
		default:
			return choice, strings.TrimSpace(rest), nil
		}
	}
}

// approve asks whether a call may be made. The arguments are the model's, and can fill any screen,
// so what stands last is ours: how long they are where they are long, and what is to be called.
func (p *person) approve(ctx context.Context, action tool.Action) (tool.Approval, error) {
	approval := tool.Approval{CallID: action.CallID, Fingerprint: action.Fingerprint}
	arguments := exact(indented(action.Arguments))
	p.print("\n%s waits for your approval: %s\n", exact(action.Tool), exact(action.Reason))
	p.print("  %s\n", arguments)
	for _, decision := range action.Decisions {
		if decision.Effective != "" {
			p.print("  it may use %s: %s\n", exact(decision.Permission), exact(decision.Effective))
		}
	}
	if lines := strings.Count(arguments, "\n") + 1; len(arguments) > maxShownBytes || lines > maxShownLines {
		p.print("above are %d bytes in %d lines that %s is called with: look where they begin\n", len(arguments), lines, exact(action.Tool))
	}
	choice, rest, err := p.choose(ctx, exact(action.Tool)+": [y]es · for this [s]ession · [n]o, and why", "yes", "session", "no")
	switch {
	case errors.Is(err, errAbsent):
		approval.Reason = "nobody is there who could approve of it"
		return approval, nil
	case choice == "no":
		approval.Reason = rest
	case choice == "session":
		approval.Scope = tool.ApproveSession
	}
	approval.Approve = choice == "yes" || choice == "session"
	return approval, err
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

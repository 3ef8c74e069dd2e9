package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-run/caisson/tool"
)

const (
	defaultCommandTime = time.Minute
	maxCommandTime     = 10 * time.Minute
	maxCommandOutput   = 1 << 20 // bytes; the executor cuts what is too long for a model
)

// handedDown are the variables that commands get of ours. All others, the API key among them, are
// not theirs.
var handedDown = []string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "SYSTEMROOT", "USERPROFILE", "TEMP"}

// command is what a model asks a shell to do: the action of OpenAI's local shell.
type command struct {
	Command             []string          `json:"command"`
	Env                 map[string]string `json:"env"`
	WorkingDirectory    string            `json:"working_directory"`
	TimeoutMilliseconds int64             `json:"timeout_ms"`
	User                string            `json:"user"`
}

// newShell returns the handler that runs commands on this machine, outside of any sandbox, each
// after the person has said so. It is nil where that was not allowed at all.
func newShell(o options, env environment) handler {
	if !o.allowShell {
		return nil
	}
	var environ []string
	for _, name := range handedDown {
		if value, ok := env.lookupEnv(name); ok && name != o.keyEnv {
			environ = append(environ, name+"="+value)
		}
	}
	return func(ctx context.Context, p *person, action tool.Action) (tool.Result, error) {
		var c command
		if err := json.Unmarshal(action.Arguments, &c); err != nil {
			return tool.Result{Error: "the command cannot be read: " + err.Error()}, nil
		}
		if len(c.Command) == 0 || c.User != "" {
			return tool.Result{Error: "want a command, which runs as the user of the agent"}, nil
		}
		shown := c.lines()
		if len(shown) > maxShownBytes {
			return tool.Result{Error: fmt.Sprintf("not run: shown to a person the command has %d bytes, and they look through %d at most; write a long script to a file first", len(shown), maxShownBytes)}, nil
		}
		p.print("\nthe model wants to run a command on this machine, outside of any sandbox:\n%s", shown)
		choice, rest, err := p.choose(ctx, "[y]es · [n]o, and why", "yes", "no")
		switch {
		case errors.Is(err, errAbsent):
			return tool.Result{Error: "not run: " + err.Error()}, nil
		case err != nil:
			return tool.Result{}, err
		case choice == "no":
			return tool.Result{Error: strings.TrimSpace("not run: the user said no. " + rest)}, nil
		}
		return c.run(ctx, environ), nil
	}
}

// lines shows all of what would run. No part of it has a line for each of its members: many short
// ones would push off the screen what stands above them.
func (c *command) lines() string {
	var b strings.Builder
	b.WriteString(" ")
	for _, argument := range c.Command {
		b.WriteString(" " + quoted(argument))
	}
	fmt.Fprintf(&b, "\n  for at most %s", c.time())
	if c.WorkingDirectory != "" {
		b.WriteString("\n  in " + quoted(c.WorkingDirectory))
	}
	if len(c.Env) > 0 {
		b.WriteString("\n  with")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		b.WriteString(" " + quoted(name) + "=" + quoted(c.Env[name]))
	}
	return b.String() + "\n"
}

// quoted returns a text in quotes in which each of its characters can be seen.
func quoted(text string) string { return exact(strconv.Quote(text)) }

func (c *command) time() time.Duration {
	if c.TimeoutMilliseconds <= 0 {
		return defaultCommandTime
	}
	return time.Duration(min(c.TimeoutMilliseconds, maxCommandTime.Milliseconds())) * time.Millisecond
}

// run runs the command. What it leaves running loses its output, and is not waited for.
func (c *command) run(ctx context.Context, environ []string) tool.Result {
	timed, stop := context.WithTimeout(ctx, c.time())
	defer stop()
	output := &limitedBuffer{}
	process := exec.CommandContext(timed, c.Command[0], c.Command[1:]...)
	process.Dir, process.Env, process.WaitDelay = c.WorkingDirectory, slices.Clone(environ), 2*time.Second
	for name, value := range c.Env {
		process.Env = append(process.Env, name+"="+value)
	}
	process.Stdout, process.Stderr = output, output
	err := process.Run()
	result := tool.Result{Success: err == nil, Output: output.text()}
	switch {
	case ctx.Err() != nil:
		result.Error = "the command was interrupted"
	case timed.Err() != nil:
		result.Error = fmt.Sprintf("the command did not end in %s", c.time())
	case err != nil:
		result.Error = "the command failed: " + err.Error()
	}
	result.Success = result.Error == ""
	return result
}

// limitedBuffer keeps the beginning of what is written to it.
type limitedBuffer struct {
	kept bytes.Buffer
	lost int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	n := min(len(p), maxCommandOutput-b.kept.Len())
	b.lost += len(p) - n
	b.kept.Write(p[:n])
	return len(p), nil
}

func (b *limitedBuffer) text() string {
	text := strings.ToValidUTF8(b.kept.String(), "\uFFFD")
	if b.lost > 0 {
		text += fmt.Sprintf("\n[%d bytes more]", b.lost)
	}
	return text
}

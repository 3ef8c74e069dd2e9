package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
)

const defaultInstructions = "You are a careful assistant. Use the tools where they help. Say so when something cannot be done."

// options are what the command line says.
type options struct {
	baseURL, model, keyEnv string
	config                 string
	tools                  []string
	instructions           string
	bounds                 bounds
	timeout                time.Duration
	allowShell             bool
	state, resume          string
	question               string // empty: one after the other is asked on the terminal
	helped                 bool   // that was all
}

// bounds are what one question may take.
type bounds struct {
	rounds int   // requests to the model
	tokens int64 // of all of them
}

// parse reads the command line.
func parse(arguments []string, out io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // what is wrong is reported in our own form
	flags.StringVar(&o.baseURL, "base-url", "", "`URL` of the API, up to what stands before /chat/completions")
	flags.StringVar(&o.model, "model", "", "`NAME` of the model")
	flags.StringVar(&o.keyEnv, "api-key-env", "", "`NAME` of the environment variable that holds the API key; none is sent unless it is named")
	flags.StringVar(&o.config, "config", "", "policy `FILE` with tools and grants; without one tools are granted nothing")
	flags.Func("tools", "load the tools of a folder or manifest, `SOURCE`; repeatable", func(source string) error {
		o.tools = append(o.tools, source)
		return nil
	})
	flags.StringVar(&o.instructions, "system", defaultInstructions, "`TEXT` that says to the model what it is")
	flags.IntVar(&o.bounds.rounds, "rounds", 16, "most requests to the model for one question, `N`")
	flags.Int64Var(&o.bounds.tokens, "tokens", 200_000, "most tokens for one question, `N`")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Minute, "most time that one answer of the model may take, a `DURATION`")
	flags.BoolVar(&o.allowShell, "allow-shell", false, "offer the model a shell on this machine, outside of any sandbox; each command is asked for")
	flags.StringVar(&o.state, "state", "", "keep a conversation that waits for you in `FILE`, where you say \"later\"")
	flags.StringVar(&o.resume, "resume", "", "go on with the conversation in `FILE`")
	err := flags.Parse(arguments)
	if err == flag.ErrHelp {
		flags.SetOutput(out)
		fmt.Fprint(out, "agent [flags] [QUESTION]\n\nWithout a question it asks for them, one after the other.\n\n")
		flags.PrintDefaults()
		return options{helped: true}, nil
	}
	if err != nil {
		return options{}, failed(exitUsage, err.Error(), "--help lists the flags")
	}
	o.question = strings.TrimSpace(strings.Join(flags.Args(), " "))
	return o, o.check()
}

// check refuses what cannot be meant.
func (o *options) check() error {
	switch {
	case o.baseURL == "" || o.model == "":
		return failed(exitUsage, "it is not said which model answers", "name it: --base-url http://localhost:11434/v1 --model NAME")
	case o.resume != "" && o.question != "":
		return failed(exitUsage, "--resume goes on with a question that was asked", "leave the new question out, or ask it without --resume")
	case o.bounds.rounds < 1 || o.bounds.tokens < 1 || o.timeout <= 0:
		return failed(exitUsage, "--rounds, --tokens and --timeout must be more than 0")
	}
	if o.state == "" {
		o.state = o.resume // what is put off again goes where it came from
	}
	if o.state != o.resume && exists(o.state) {
		return failed(exitUsage, fmt.Sprintf("--state %s: there is such a file", o.state), "name another file, or go on with the conversation in it: --resume "+o.state)
	}
	return nil
}

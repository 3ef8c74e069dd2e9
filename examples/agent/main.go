// Command agent is an agent on the terminal: a language model behind any API that is compatible
// with OpenAI's chat completions answers questions, and the tools that it calls run in the sandbox.
//
//	agent --base-url https://api.openai.com/v1 --model MODEL --api-key-env OPENAI_API_KEY \
//		--config caisson.yaml --tools wasm-tools "What is 17 * 19?"
//
// Answers go to standard output, everything else to standard error. It exits with 0 when the model
// has answered, 1 when something failed, 2 when it was called wrongly, 4 when a bound was reached,
// 5 when it has kept a conversation that waits, and 130 when it was interrupted.
package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/caisson-run/caisson/runtime"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the work in good order; a second one ends the process.
	context.AfterFunc(ctx, stop)
	compiler := runtime.ChildCompiler(ctx)
	os.Exit(run(ctx, os.Args[1:], environment{
		stdin: os.Stdin, interactive: isTerminal(os.Stdin), stdout: os.Stdout, stderr: os.Stderr,
		lookupEnv: os.LookupEnv, compiler: compiler, transport: newTransport(), wait: wait,
	}))
}

// environment is what the program gets from the outside. Tests bring their own.
type environment struct {
	stdin          io.Reader
	interactive    bool // a person is at stdin
	stdout, stderr io.Writer
	lookupEnv      func(name string) (value string, ok bool)
	compiler       runtime.Compiler
	transport      http.RoundTripper
	wait           waiter
}

// run is the program. It returns the exit code.
func run(ctx context.Context, arguments []string, env environment) int {
	o, err := parse(arguments, env.stdout)
	if err == nil && !o.helped {
		err = serve(ctx, o, env)
	}
	return report(ctx, env.stderr, err)
}

// serve makes an agent of the options, and has it work.
func serve(ctx context.Context, o options, env environment) (err error) {
	model, err := newEndpoint(o, env)
	if err != nil {
		return err
	}
	var from *suspended
	if o.resume != "" {
		if from, err = takeUp(o.resume); err != nil {
			return err
		}
		defer func() { err = from.release(err) }()
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	person := newPerson(reading, env, o.state != "")
	box, err := openToolbox(ctx, o, env)
	if err != nil {
		return err
	}
	defer func() { err = joined(err, box.close(ctx)) }()
	a, err := newAgent(o, env, model, person, box, from)
	if err != nil {
		return err
	}
	switch {
	case from != nil:
		return a.goOn(ctx, from)
	case o.question != "":
		return a.ask(ctx, o.question)
	}
	return a.converse(ctx)
}

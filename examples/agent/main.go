// Command agent answers a question with a language model, over any API that is compatible with
// OpenAI's chat completions, and runs the model's tool calls in the sandbox.
//
//	agent --base-url https://api.openai.com/v1 --model MODEL --api-key-env OPENAI_API_KEY \
//		--config caisson.yaml --tools wasm-tools "What is 17 * 19?"
//
// The answer goes to standard output, everything else to standard error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/openai"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal ends the process
	options := runtime.Options{Compiler: runtime.ChildCompiler(ctx), LookupEnv: os.LookupEnv}
	info, err := os.Stdin.Stat()
	person := newPerson(os.Stdin, os.Stderr, err == nil && info.Mode()&os.ModeCharDevice != 0)
	if err := run(ctx, os.Args[1:], options, os.Stdout, person); err != nil && !errors.Is(err, flag.ErrHelp) {
		person.print("agent: error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, sandbox runtime.Options, out io.Writer, person *person) (err error) {
	options := caisson.Options{Runtime: sandbox}
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	flags.SetOutput(person.out)
	baseURL := flags.String("base-url", "", "`URL` of the API, without /chat/completions")
	name := flags.String("model", "", "`NAME` of the model")
	keyEnv := flags.String("api-key-env", "", "`NAME` of the environment variable that holds the API key")
	rounds := flags.Int("rounds", 16, "maximum number of requests to the model, `N`")
	flags.StringVar(&options.PolicyFile, "config", "",
		"policy `FILE` with tools and grants; without it, tools are granted nothing")
	flags.Func("tools", "load tools from a folder or manifest `SOURCE`; repeatable", func(source string) error {
		options.Tools = append(options.Tools, source)
		return nil
	})
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	key, ok := sandbox.LookupEnv(*keyEnv)
	if !ok && *keyEnv != "" {
		return fmt.Errorf("--api-key-env: the variable %s is not set", *keyEnv)
	}
	host, err := caisson.Open(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close(context.WithoutCancel(ctx))) }()
	var unserved []string // tools that the client would have to run, which this one cannot
	for _, entry := range host.Registry().List() {
		if entry.Manifest.Execution == manifests.ExecutionClient {
			unserved = append(unserved, entry.Name)
		}
	}
	dialect := openai.New()
	offered, _, err := dialect.Definitions(host.Registry().Without(unserved...).Definitions(),
		dialects.DefinitionOptions{})
	if err != nil {
		return err
	}
	session, err := host.NewSession(executor.SessionOptions{})
	if err != nil {
		return err
	}
	// A redirect could send the conversation and the key to another host.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	a := &agent{
		model: model{
			client: http.Client{Timeout: 10 * time.Minute, CheckRedirect: stay}, dialect: dialect, tools: offered,
			url: strings.TrimSuffix(*baseURL, "/") + "/chat/completions", name: *name, key: key,
		},
		host: host, session: session, person: person, out: out,
	}
	return a.ask(ctx, strings.Join(flags.Args(), " "), *rounds)
}

package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/server/mcp"
)

const mcpHelp = `Serve the tools to one client of the Model Context Protocol, such as a desktop assistant,
on standard input and output. The client starts the command. Flags and the policy decide
which tools it serves and what these may do. The client cannot change that.

If the client supports elicitation (questions to the user), Caisson uses it to ask the user
for two things: approval of calls, for instance of destructive tools, and the results of
tools that the client runs (execution: client). Otherwise these calls fail. --approve-tool
runs a destructive tool without asking.

Results longer than --max-output are truncated. The model reads the rest with the tool
read_output, and the client with the resource to which the result links.

The command ends at the end of its input, or at a signal (SIGINT, SIGTERM, SIGHUP). Calls
that still run are cancelled. While the client does not read its answers, no more input is
read. Messages go to standard error. --verbose adds a log of each step.

` + keptHelp

const mcpExample = `  caisson mcp --tools ./wasm-tools --mount /project=./workspace:rw --context project_id=demo
  caisson mcp --config caisson.yaml --agent researcher`

func newMCP(o options) *cobra.Command {
	command := &cobra.Command{
		Use:     "mcp",
		Short:   "serve the tools to an MCP client, on standard input and output",
		Long:    mcpHelp,
		Example: mcpExample,
		Args:    positional(0, 0, ""),
		RunE:    func(command *cobra.Command, _ []string) error { return o.mcp(command.Context()) },
	}
	o.runFlags(command, "each call", "64KiB",
		"store records for \"caisson explain\" in `DIR`; with \"\", nothing is stored unless --ledger is given")
	command.Flags().BoolVar(&o.quiet, "quiet", false, "print errors only: no hints")
	o.completes(command)
	return command
}

// mcp serves the client that started the command until it disconnects.
func (o *options) mcp(ctx context.Context) (err error) {
	h, err := o.open(ctx, openMode{serves: true})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, h.close(ctx)) }()
	h.noteUnsentSecrets(nil)
	more, err := h.addOutputTool()
	if err != nil {
		return err
	}
	if err := h.start(ctx, more...); err != nil {
		return err
	}
	server, err := mcp.New(h.Host, mcp.Options{Version: readVersion().Version, Logger: h.serverLog(slog.LevelError)})
	if err != nil {
		return err
	}
	serving, stop := h.runaways.within(ctx)
	defer stop()
	err = server.ServeLines(serving, h.session, input(o.stdin), nopCloser{o.stdout})
	if failure := h.runaways.failure(); failure != nil {
		return failure
	}
	err = cmp.Or(err, h.session.Close(context.WithoutCancel(ctx)))
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), toClose)
	defer cancel()
	if err = cmp.Or(err, server.Close(closing)); err != nil {
		return failed(exitFailed, err.Error())
	}
	return nil
}

// toClose is the maximum time by which a client that does not read its answers may delay the end of the command.
const toClose = time.Second

// agentTools returns a function that reads which tools the chosen agent may call, and adds more. It is nil if no agent
// is chosen. The agent may change while the command runs, and while a call waits for its approval.
func (h *host) agentTools(ctx context.Context, more []string) (func() ([]string, error), error) {
	if h.options.agent == "" {
		return nil, nil
	}
	store, err := h.agents(ctx)
	if err != nil {
		return nil, err
	}
	return func() ([]string, error) {
		agent, _, err := store.Load(ctx, h.options.tenant, h.options.agent, h.registry)
		if err != nil {
			return nil, err
		}
		return append(append([]string{}, agent.AllowedTools...), more...), nil // never nil, which would allow all
	}, nil
}

// addOutputTool adds the tool that reads the rest of a cut result, unless its name is taken, and returns its name.
func (h *host) addOutputTool() ([]string, error) {
	pages, err := executor.OutputTool()
	if err != nil {
		return nil, err
	}
	switch err := h.registry.Register("", pages); {
	case errors.Is(err, registry.ErrDuplicate):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return []string{pages.Manifest().Name}, nil
}

// input returns standard input with a Close that, if possible, ends a blocked read.
func input(stdin io.Reader) io.ReadCloser {
	if closer, ok := stdin.(io.ReadCloser); ok {
		return closer
	}
	return io.NopCloser(stdin)
}

// nopCloser leaves standard output open.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

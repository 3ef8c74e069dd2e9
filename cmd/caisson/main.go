// Command caisson runs untrusted tools for AI agents, each call in its own sandbox.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	goruntime "runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/runtime"
)

func main() {
	log.SetOutput(io.Discard) // no user of this command reads what libraries log
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
	// The first signal ends the work in an orderly way. A second one kills the process.
	context.AfterFunc(ctx, stop)
	compiler := runtime.ChildCompiler(ctx)
	os.Exit(
		run(ctx, os.Args[1:],
			environment{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, compiler: compiler, exit: os.Exit}))
}

// stopSignals returns the signals that end the work: also that of a closed terminal, unless nohup has it ignored.
func stopSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

func run(ctx context.Context, args []string, env environment) int {
	env.args = args
	root := newRoot(env)
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	// The flag is unknown if the command line failed before its flags were parsed.
	quiet, _ := command.Flags().GetBool("quiet")
	return report(ctx, env, err, quiet)
}

const rootHelp = `Caisson runs untrusted tools for AI agents. A tool is a WebAssembly module with a
manifest. Every call runs in a fresh sandbox with limits on time, memory, output and disk.
A tool reaches only what its manifest requests and the operator grants, with flags or in a
policy file (--config).

Exit codes:
  0    success
  1    the tool failed, or Caisson itself did; the result of "caisson replay" differs; or
       "caisson records verify" found that something is wrong
  2    usage, configuration or manifest error, unknown tool, or invalid arguments
  3    permission denied
  4    a limit or the deadline was exceeded, the call could not run now (busy), it is not
       known how the call ended, or a tool could not be stopped at its deadline, which is a
       bug in Caisson
  5    the batch is paused: it needs approvals, or results of tools that the client runs
  130  interrupted

With "caisson batch", failed calls do not change the exit code; its help lists the codes
that it uses.`

// newRoot returns the root command. Each run needs a new one, because it holds the values of flags.
func newRoot(env environment) *cobra.Command {
	o := options{environment: env}
	root := &cobra.Command{
		Use:           "caisson",
		Short:         "Run untrusted tools for AI agents",
		Long:          rootHelp,
		Version:       readVersion().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(root *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(root, args[0])
			}
			root.SetOut(env.stderr)
			if err := root.Help(); err != nil {
				return err
			}
			return &failure{code: exitUsage}
		},
	}
	root.SetIn(env.stdin)
	root.SetOut(env.stdout)
	root.SetErr(env.stderr)
	root.SetVersionTemplate("caisson {{.Version}}\n")
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(newHelp())
	root.SetFlagErrorFunc(flagFailure)
	root.AddCommand(newCall(o), newBatch(o), newList(o), newInspect(o), newExplain(o), newReplay(o), newRecords(o),
		newMCP(o),
		newServe(o), newAgent(o), newToken(o), newValidate(o), newCompile(o), newInterpreters(o), newBench(o), newVersion(o),
		newCompletion())
	return root
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "describe a command",
		Args:  positional(0, 1, "COMMAND"),
		RunE: func(help *cobra.Command, args []string) error {
			if len(args) == 0 {
				return help.Root().Help()
			}
			for _, command := range help.Root().Commands() {
				if command.Name() == args[0] {
					command.InitDefaultHelpFlag()
					return command.Help()
				}
			}
			return unknownCommand(help.Root(), args[0])
		},
	}
}

type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // in version control; empty if unknown
	Modified bool   `json:"modified"` // whether the checkout had changes
	Go       string `json:"go"`
	Wazero   string `json:"wazero"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func readVersion() version {
	v := version{Version: "(unknown)", Go: goruntime.Version(), Wazero: "(unknown)", OS: goruntime.GOOS,
		Arch: goruntime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			v.Revision = setting.Value
		case "vcs.modified":
			v.Modified = setting.Value == "true"
		}
	}
	for _, dependency := range info.Deps {
		if dependency.Path == "github.com/tetratelabs/wazero" {
			v.Wazero = dependency.Version
		}
	}
	return v
}

func newVersion(o options) *cobra.Command {
	command := &cobra.Command{
		Use:   "version",
		Short: "print the version of caisson and of its main dependencies",
		Args:  positional(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			return o.show(v, v.String())
		},
	}
	o.outputFlags(command, "print one JSON object")
	return command
}

// String returns the version for people, on several lines.
func (v version) String() string {
	text := "caisson " + v.Version + "\n"
	if v.Revision != "" {
		changes := ""
		if v.Modified {
			changes = " with changes"
		}
		text += "revision " + v.Revision + changes + "\n"
	}
	return text + fmt.Sprintf("go %s\nwazero %s\nplatform %s/%s\n", v.Go, v.Wazero, v.OS, v.Arch)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
)

// defaultTools is the source where no --tools flag names one.
const defaultTools = "wasm-tools"

// host is the loaded tools and what runs them. Close it.
type host struct {
	*caisson.Host
	options  *options
	operator *operator
	sources  []string
	registry *registry.Registry
	logger   *slog.Logger // nil without --verbose
	runaways *runaways
	ledger   *ledger  // nil where tools are only looked at
	witness  *witness // likewise
}

// opening says what tools are opened for.
type opening struct {
	cacheDir string // for compiled code; empty for none, as where tools are only looked at
	runs     bool   // calls are run
	claims   executor.Claimer
}

// open loads the tools that the flags and the policy name, as these grant.
func (o *options) open(ctx context.Context, env environment, opening opening) (_ *host, err error) {
	if o.quiet && o.verbose {
		return nil, failed(exitUsage, "--quiet and --verbose exclude each other")
	}
	operator, err := o.operator()
	if err != nil {
		return nil, err
	}
	sources, err := operator.sources()
	if err != nil {
		return nil, err
	}
	h := &host{options: o, operator: operator, sources: sources, runaways: newRunaways(env, o.quiet)}
	if o.verbose {
		h.logger = slog.New(slog.NewTextHandler(env.stderr, nil))
	}
	options := h.openOptions(env, opening.cacheDir)
	if opening.runs {
		if err := h.runOptions(env, opening.claims, &options); err != nil {
			return nil, err
		}
	}
	if h.Host, err = caisson.Open(ctx, options); err != nil {
		return nil, notOpened(ctx, err, opening.cacheDir)
	}
	h.registry = h.Registry()
	h.logUnapplied(ctx)
	return h, nil
}

// openOptions says what is opened, and with what.
func (h *host) openOptions(env environment, cacheDir string) caisson.Options {
	o, policy := h.options, *h.operator.policy
	policy.Tools = nil // they are among the sources, unless one alone is looked at
	return caisson.Options{
		Policies: []*manifests.Policy{&policy, h.operator.flags}, Tools: h.sources, Profile: o.profile,
		NoCache: cacheDir == "", Logger: h.logger,
		Runtime: runtime.Options{
			CacheDir: cacheDir, Compiler: env.compiler, TrustedModules: o.trusted, Limits: o.limits(), LookupEnv: os.LookupEnv,
			OnRunaway: h.runaways.add, LastResort: h.runaways.lastResort(),
		},
	}
}

// runOptions adds how calls are run, and who is told of them.
func (h *host) runOptions(env environment, claims executor.Claimer, options *caisson.Options) (err error) {
	h.ledger = &ledger{host: h, parents: map[string]string{}}
	h.witness = &witness{causes: map[string]error{}, progress: newProgress(env, h.options)}
	if options.Executor, err = h.options.executorOptions(h.ledger.readOn); err != nil {
		return err
	}
	options.Executor.Recorder, options.Executor.Pause.Claim = h.ledger, claims
	options.StateDir, h.ledger.problem = h.options.state.folder()
	options.Resolver = h.witness.over
	return nil
}

// notOpened words why the tools could not be opened.
func notOpened(ctx context.Context, err error, cacheDir string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var known *caisson.Error
	if !errors.As(err, &known) {
		return err
	}
	switch err := known.Err; {
	case known.Kind != caisson.ErrRuntime:
		return &failure{exitUsage, messagesOf(err)}
	case cacheDir != "":
		return failed(exitUsage, err.Error(), `name another folder with --cache-dir DIR, or compile anew each time with --cache-dir ""`)
	default:
		return err
	}
}

// sources returns the folders and manifests to load, which all exist: those of the flags,
// then those of the policy.
func (op *operator) sources() ([]string, error) {
	o := op.options
	if o.only != "" {
		return []string{o.only}, nil
	}
	if len(o.tools)+len(op.policy.Tools) == 0 {
		if info, err := os.Stat(defaultTools); err != nil || !info.IsDir() {
			return nil, failed(exitUsage, "no tools are given, and there is no folder ./"+defaultTools, "name a folder with --tools DIR")
		}
		return []string{defaultTools}, nil
	}
	var missing []message
	for _, source := range o.tools {
		if isMissing(source) {
			missing = append(missing, message{fmt.Sprintf("--tools %q: there is no such file or folder", source), nil})
		}
	}
	for _, source := range op.policy.Tools {
		if isMissing(source) {
			missing = append(missing, message{fmt.Sprintf("%s: tools: there is no file or folder %q", op.policy.File, source), nil})
		}
	}
	if len(missing) > 0 {
		return nil, &failure{exitUsage, missing}
	}
	return distinct(slices.Concat(o.tools, op.policy.Tools)), nil
}

func isMissing(source string) bool {
	_, err := os.Stat(source)
	return errors.Is(err, fs.ErrNotExist)
}

// close ends the host. It waits for calls, also when ctx has ended. With a call that cannot be
// stopped, all stays as it is: the process is about to end.
func (h *host) close(ctx context.Context) error {
	if h.runaways.any() {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	return h.Close(ctx)
}

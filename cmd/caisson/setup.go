package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
)

// defaultTools is the source where no --tools flag names one.
const defaultTools = "wasm-tools"

// host is the loaded tools and what runs them. Close it.
type host struct {
	options  *options
	operator *operator
	sources  []string
	runtime  *runtime.Runtime
	registry *registry.Registry
	logger   *slog.Logger // nil without --verbose
	runaways *runaways
}

// open loads the tools that the flags and the policy name, as these grant. Where the tools are
// only looked at, cacheDir is empty.
func (o *options) open(ctx context.Context, env environment, cacheDir string) (_ *host, err error) {
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
	h := &host{options: o, operator: operator, sources: sources, registry: registry.New(), runaways: newRunaways(env, o.quiet)}
	if o.verbose {
		h.logger = slog.New(slog.NewTextHandler(env.stderr, nil))
	}
	if h.runtime, err = h.newRuntime(ctx, env, cacheDir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = h.close(ctx) // what made the loading fail matters more
		}
	}()
	var problems []message
	for _, source := range sources {
		err := h.registry.Load(ctx, registry.Directory(source), func(ctx context.Context, m *manifests.Manifest) (registry.Tool, error) {
			return h.runtime.Load(ctx, m, operator.grants(m))
		})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			problems = append(problems, messagesOf(err)...)
		}
	}
	if len(problems) > 0 {
		return nil, &failure{exitUsage, problems}
	}
	h.logUnapplied(ctx)
	return h, nil
}

func (h *host) newRuntime(ctx context.Context, env environment, cacheDir string) (*runtime.Runtime, error) {
	op := h.operator
	rt, err := runtime.New(ctx, runtime.Options{
		CacheDir: cacheDir, Compiler: env.compiler, TrustedModules: op.options.trusted,
		Profile: op.profile, Limits: op.options.limits(), LookupEnv: os.LookupEnv, Logger: h.logger,
		OnRunaway: h.runaways.add, LastResort: h.runaways.lastResort(),
	})
	if err != nil && cacheDir != "" {
		return nil, failed(exitUsage, err.Error(), `name another folder with --cache-dir DIR, or compile anew each time with --cache-dir ""`)
	}
	return rt, err
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
	return errors.Join(h.registry.Close(ctx), h.runtime.Close(ctx))
}

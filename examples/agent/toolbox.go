package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
)

// toolbox is the tools, and what runs them. Close it.
type toolbox struct {
	runtime  *runtime.Runtime
	loaded   *registry.Registry // which owns the tools
	offered  *registry.Registry // without those that nothing here can run
	executor *executor.Executor
	handlers map[string]handler // of the tools that the client runs, by name
	context  map[string]string  // what the policy fixes
}

// openToolbox loads the tools that the command line and the policy name, with what the policy
// grants to them.
func openToolbox(ctx context.Context, o options, env environment) (_ *toolbox, err error) {
	policy := &manifests.Policy{}
	if o.config != "" {
		if policy, err = manifests.LoadPolicy(o.config); err != nil {
			return nil, &failure{exitUsage, err.Error(), nil, err}
		}
	}
	profile, err := policy.ProfileNamed("")
	if err != nil {
		return nil, err
	}
	sources := append(o.tools, policy.Tools...)
	if len(sources) == 0 {
		return nil, failed(exitUsage, "there are no tools", "name a folder with --tools DIR, or under tools: in the policy")
	}
	cache, err := runtime.DefaultCacheDir()
	if err != nil {
		return nil, err
	}
	rt, err := runtime.New(ctx, runtime.Options{
		CacheDir: cache, Compiler: env.compiler, Profile: profile, LookupEnv: env.lookupEnv,
		Logger: slog.New(slog.NewTextHandler(env.stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return nil, err
	}
	box := &toolbox{runtime: rt, loaded: registry.New(), handlers: map[string]handler{}, context: fixed(policy)}
	err = box.load(ctx, sources, policy)
	if err == nil {
		err = box.offer(newShell(o, env))
	}
	if err != nil {
		return nil, joined(err, box.close(ctx))
	}
	return box, nil
}

func (b *toolbox) load(ctx context.Context, sources []string, policy *manifests.Policy) error {
	for _, source := range sources {
		err := b.loaded.Load(ctx, registry.Directory(source), func(ctx context.Context, m *manifests.Manifest) (registry.Tool, error) {
			return b.runtime.Load(ctx, m, policy.For(m.Name, m.File))
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return &failure{exitUsage, err.Error(), nil, err}
		}
	}
	return nil
}

// offer leaves out the tools that would have to be run by this program and that it cannot run.
func (b *toolbox) offer(shell handler) (err error) {
	var unserved []string
	for _, entry := range b.loaded.List() {
		if entry.Manifest.Execution != manifests.Client {
			continue
		}
		if handle := handlerOf(entry.Manifest, shell); handle != nil {
			b.handlers[entry.Name] = handle
		} else {
			unserved = append(unserved, entry.Name)
		}
	}
	b.offered = b.loaded.Without(unserved...)
	b.executor, err = executor.New(b.offered, executor.Options{})
	return err
}

// close waits for calls, also when ctx has ended.
func (b *toolbox) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	return joined(b.loaded.Close(ctx), b.runtime.Close(ctx))
}

// fixed returns the context values that a policy fixes. There is nobody else here to set others.
func fixed(policy *manifests.Policy) map[string]string {
	values := map[string]string{}
	for _, source := range policy.Context {
		if source.From == manifests.Fixed {
			values[source.Name] = source.Value
		}
	}
	return values
}

// definitions writes the tools as the model's API takes them. What it would refuse is an error,
// since one such tool makes it refuse all.
func (b *toolbox) definitions(dialect dialects.Dialect) (json.RawMessage, error) {
	definitions, findings, err := dialect.Definitions(b.offered.Definitions(), dialects.DefinitionOptions{Adapt: true})
	if err != nil {
		return nil, err
	}
	for _, finding := range findings {
		if finding.Severity == dialects.Refused && !finding.Adapted {
			return nil, failed(exitUsage, fmt.Sprintf("the tool %s: %s", finding.Tool, finding.Message), finding.Fix)
		}
	}
	return definitions, nil
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
)

// toolbox is the tools, and what runs them. Close it.
type toolbox struct {
	host     *caisson.Host
	offered  *registry.Registry // without those that nothing here can run
	handlers map[string]handler // of the tools that the client runs, by name
}

// openToolbox loads the tools that the command line and the policy name, with what the policy
// grants to them.
func openToolbox(ctx context.Context, o options, env environment) (*toolbox, error) {
	box := &toolbox{handlers: map[string]handler{}}
	shell := newShell(o, env)
	var err error
	box.host, err = caisson.Open(ctx, caisson.Options{
		PolicyFile: o.config, Tools: o.tools,
		Runtime: runtime.Options{Compiler: env.compiler, LookupEnv: env.lookupEnv,
			Logger: slog.New(slog.NewTextHandler(env.stderr, &slog.HandlerOptions{Level: slog.LevelError}))},
		Resolver: func(tools *registry.Registry) executor.Resolver { return box.offer(tools, shell) },
	})
	if err != nil {
		return nil, notOpened(ctx, err)
	}
	if len(box.host.Registry().List()) == 0 {
		return nil, joined(failed(exitUsage, "there are no tools", "name a folder with --tools DIR, or under tools: in the policy"), box.close(ctx))
	}
	return box, nil
}

// notOpened says that the policy or the tools are to blame, where they are.
func notOpened(ctx context.Context, err error) error {
	var known *caisson.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !errors.As(err, &known):
		return err
	case known.Kind == caisson.ErrPolicy || known.Kind == caisson.ErrTools:
		return &failure{exitUsage, known.Err.Error(), nil, known.Err}
	}
	return known.Err
}

// offer leaves out the tools that would have to be run by this program and that it cannot run.
func (b *toolbox) offer(tools *registry.Registry, shell handler) *registry.Registry {
	var unserved []string
	for _, entry := range tools.List() {
		if entry.Manifest.Execution != manifests.Client {
			continue
		}
		if handle := handlerOf(entry.Manifest, shell); handle != nil {
			b.handlers[entry.Name] = handle
		} else {
			unserved = append(unserved, entry.Name)
		}
	}
	b.offered = tools.Without(unserved...)
	return b.offered
}

// close waits for calls, also when ctx has ended.
func (b *toolbox) close(ctx context.Context) error { return b.host.Close(context.WithoutCancel(ctx)) }

// definitions writes the tools as the model's API takes them. What it would refuse is an error,
// since one such tool makes it refuse all.
func (b *toolbox) definitions(dialect dialects.Dialect) (json.RawMessage, error) {
	definitions, findings, err := dialect.Definitions(b.offered.Definitions(), dialects.DefinitionOptions{})
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

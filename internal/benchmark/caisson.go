package benchmark

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

const toolManifest = `schema: caisson/v1
name: tool
description: Puts a text in capitals and adds numbers up.
module: {path: tool.wasm, abi: %s, stdout: text}
parameters:
  type: object
  properties: {text: {type: string}, nums: {type: array, items: {type: integer}}}
  required: [text, nums]
behavior: {snapshot: %s}
`

const kernelManifest = `schema: caisson/v1
name: kernel
description: Runs a compute kernel and says how long it took.
module: {path: tool.wasm, abi: wasi, args: ["{kernel}", "{size}"], stdin: none, stdout: text}
parameters:
  type: object
  properties: {kernel: {type: string}, size: {type: integer}}
  required: [kernel, size]
`

// manifestOf returns the JSON tool's manifest, as a WASI command or as an Extism plug-in.
func manifestOf(language guests.Language, abi modules.ABI) string {
	snapshot := "auto"
	if language == guests.Go || language == guests.GoWarm {
		snapshot = "start" // Go seeds its maps at start-up, so auto takes no snapshot
	}
	return fmt.Sprintf(toolManifest, abi, snapshot)
}

// caissonTool runs a tool in Caisson's sandbox, as a program that embeds Caisson does.
type caissonTool struct {
	folder   string // holds the manifest and the module
	compiler runtime.Compiler
}

// newCaissonTool writes a tool to its own folder.
func newCaissonTool(folder, manifest string, module []byte, compiler runtime.Compiler) (caissonTool, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return caissonTool{}, fmt.Errorf("benchmark: %w", err)
	}
	for name, content := range map[string][]byte{"tool.yaml": []byte(manifest), "tool.wasm": module} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return caissonTool{}, fmt.Errorf("benchmark: %w", err)
		}
	}
	return caissonTool{folder, compiler}, nil
}

func (c caissonTool) open(ctx context.Context, dir string) (session, error) {
	return c.start(ctx, dir)
}

// start loads the tool and compiles its module.
func (c caissonTool) start(ctx context.Context, dir string) (*caissonSession, error) {
	rt, err := runtime.New(ctx, runtime.Options{CacheDir: dir, Compiler: c.compiler, Running: 1 << 10})
	if err != nil {
		return nil, err
	}
	loaded, err := c.load(ctx, rt)
	if err != nil {
		return nil, errors.Join(err, rt.Close(ctx))
	}
	return &caissonSession{rt, loaded}, nil
}

func (c caissonTool) load(ctx context.Context, rt *runtime.Runtime) (*runtime.Tool, error) {
	manifest, err := manifests.Load(filepath.Join(c.folder, "tool.yaml"))
	if err != nil {
		return nil, err
	}
	loaded, err := rt.Load(ctx, manifest, manifests.Grants{})
	if err != nil {
		return nil, err
	}
	return loaded, loaded.Prepare(ctx)
}

// caissonSession is a loaded tool.
type caissonSession struct {
	runtime *runtime.Runtime
	tool    *runtime.Tool
}

func (s *caissonSession) caller(context.Context) (caller, error) {
	return callFunc(func(ctx context.Context, in input) ([]byte, error) {
		output, err := s.invoke(ctx, in.arguments)
		return []byte(output), err
	}), nil
}

// close does nothing for a session that was not opened.
func (s *caissonSession) close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	return s.runtime.Close(ctx)
}

// invoke returns the tool's output.
func (s *caissonSession) invoke(ctx context.Context, arguments tool.Arguments) (string, error) {
	name := s.tool.Manifest().Name
	outcome, err := s.tool.Invoke(ctx, tool.Invocation{CallID: "benchmark", Tool: name, Arguments: arguments})
	switch {
	case err != nil:
		return "", fmt.Errorf("benchmark: caisson: %w", err)
	case !outcome.Result.Success:
		return "", fmt.Errorf("benchmark: caisson: %s: %s", outcome.Result.Error, outcome.Log)
	}
	return outcome.Result.Output, nil
}

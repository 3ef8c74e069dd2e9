package benchmark

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"
)

// extismPlugin runs a plug-in on Extism's Go SDK, with its defaults: calls are not bounded
// in time or memory.
type extismPlugin struct {
	module []byte
	// reused keeps one instance for each caller; otherwise each call has its own.
	reused bool
}

func (p extismPlugin) open(ctx context.Context, dir string) (session, error) {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, fmt.Errorf("benchmark: extism: %w", err)
	}
	manifest := extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: p.module}}}
	config := extism.PluginConfig{EnableWasi: true, RuntimeConfig: wazero.NewRuntimeConfig().WithCompilationCache(cache)}
	compiled, err := extism.NewCompiledPlugin(ctx, manifest, config, nil)
	if err != nil {
		return nil, fmt.Errorf("benchmark: extism: %w", errors.Join(err, cache.Close(ctx)))
	}
	return &extismSession{cache, compiled, p.reused}, nil
}

type extismSession struct {
	cache    wazero.CompilationCache
	compiled *extism.CompiledPlugin
	reused   bool
}

func (s *extismSession) caller(ctx context.Context) (caller, error) {
	if !s.reused {
		return extismFresh{session: s}, nil
	}
	return s.instance(ctx)
}

func (s *extismSession) instance(ctx context.Context) (extismInstance, error) {
	plugin, err := s.compiled.Instance(ctx, extism.PluginInstanceConfig{})
	if err != nil {
		return extismInstance{}, fmt.Errorf("benchmark: extism: %w", err)
	}
	return extismInstance{plugin}, nil
}

func (s *extismSession) close(ctx context.Context) error {
	return errors.Join(s.compiled.Close(ctx), s.cache.Close(ctx))
}

// extismFresh makes an instance for each call.
type extismFresh struct {
	stateless
	session *extismSession
}

func (f extismFresh) call(ctx context.Context, in input) ([]byte, error) {
	instance, err := f.session.instance(ctx)
	if err != nil {
		return nil, err
	}
	output, err := instance.call(ctx, in)
	// The output lies in the memory of an instance that is about to end.
	return bytes.Clone(output), errors.Join(err, instance.close(ctx))
}

// extismInstance answers calls one after another.
type extismInstance struct{ plugin *extism.Plugin }

func (i extismInstance) call(ctx context.Context, in input) ([]byte, error) {
	code, output, err := i.plugin.CallWithContext(ctx, "call", in.expected.Input)
	if err == nil && code != 0 {
		err = fmt.Errorf("the plug-in returned %d", code)
	}
	if err != nil {
		return nil, fmt.Errorf("benchmark: extism: %w", err)
	}
	return output, nil
}

func (i extismInstance) close(ctx context.Context) error { return i.plugin.CloseWithContext(ctx) }

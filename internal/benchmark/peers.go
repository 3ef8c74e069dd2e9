package benchmark

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os/exec"
	goruntime "runtime"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/caisson-run/caisson/internal/benchmark/guests/go/handler"
)

// callNative calls the tool's Go code in this process.
func callNative(_ context.Context, in input) ([]byte, error) {
	var tool handler.Handler
	return tool.Handle(in.expected.Input)
}

// process starts a native program for each call.
func process(program string) callFunc {
	return func(ctx context.Context, in input) ([]byte, error) {
		command := exec.CommandContext(ctx, program)
		command.Stdin = bytes.NewReader(in.expected.Input)
		output, err := command.Output()
		if err != nil {
			return nil, fmt.Errorf("benchmark: native process: %w", err)
		}
		return output, nil
	}
}

// plainWazero runs a WASI command on plain wazero.
type plainWazero struct {
	module []byte
	// closeOnContextDone makes wazero stop a guest when its context ends.
	closeOnContextDone bool
}

func (p plainWazero) open(ctx context.Context, dir string) (session, error) { return p.start(ctx, dir) }

func (p plainWazero) start(ctx context.Context, dir string) (*wazeroSession, error) {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, fmt.Errorf("benchmark: wazero: %w", err)
	}
	config := wazero.NewRuntimeConfig().WithCompilationCache(cache).WithCloseOnContextDone(p.closeOnContextDone)
	s := &wazeroSession{cache: cache, runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	if _, err = wasi_snapshot_preview1.Instantiate(ctx, s.runtime); err == nil {
		s.compiled, err = s.runtime.CompileModule(ctx, p.module)
	}
	if err != nil {
		return nil, fmt.Errorf("benchmark: wazero: %w", errors.Join(err, s.close(ctx)))
	}
	return s, nil
}

// wazeroSession runs each call in its own instance.
type wazeroSession struct {
	cache    wazero.CompilationCache
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

func (s *wazeroSession) caller(context.Context) (caller, error) {
	return callFunc(func(ctx context.Context, in input) ([]byte, error) {
		return s.run(ctx, bytes.NewReader(in.expected.Input))
	}), nil
}

// close does nothing for a session that was not opened.
func (s *wazeroSession) close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	return errors.Join(s.runtime.Close(ctx), s.cache.Close(ctx))
}

// run runs the command once, in a new instance, and returns its output.
func (s *wazeroSession) run(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	var output bytes.Buffer
	config := wazero.NewModuleConfig().WithName("").WithArgs(append([]string{"tool"}, args...)...).
		WithStdin(stdin).WithStdout(&output).WithSysNanotime().WithSysWalltime().WithRandSource(rand.Reader)
	instance, err := s.runtime.InstantiateModule(ctx, s.compiled, config)
	var exit *sys.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 0 {
		return output.Bytes(), nil // Go's programs end with an exit, which closes the instance
	}
	if err != nil {
		return nil, fmt.Errorf("benchmark: wazero: %w", err)
	}
	return output.Bytes(), instance.Close(ctx)
}

// extismPlugin runs a plug-in on Extism's Go SDK with its defaults, which limit neither the time nor
// the memory of calls.
type extismPlugin struct {
	module []byte
	// reused keeps one instance for each processor, which all callers share. Otherwise each call has its own.
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
	s := &extismSession{cache: cache, compiled: compiled}
	if p.reused {
		s.pool = make(chan *extismShared, goruntime.GOMAXPROCS(0))
		for range cap(s.pool) {
			instance, err := s.instance(ctx)
			if err != nil {
				return nil, errors.Join(err, s.close(ctx))
			}
			s.pool <- &extismShared{extismInstance: instance}
		}
	}
	return s, nil
}

type extismSession struct {
	cache    wazero.CompilationCache
	compiled *extism.CompiledPlugin
	pool     chan *extismShared // nil if each call has its own instance
}

func (s *extismSession) caller(context.Context) (caller, error) {
	if s.pool != nil {
		return &extismPooled{session: s}, nil
	}
	return callFunc(s.callFresh), nil
}

func (s *extismSession) instance(ctx context.Context) (extismInstance, error) {
	plugin, err := s.compiled.Instance(ctx, extism.PluginInstanceConfig{})
	if err != nil {
		return extismInstance{}, fmt.Errorf("benchmark: extism: %w", err)
	}
	return extismInstance{plugin}, nil
}

func (s *extismSession) close(ctx context.Context) (err error) {
	for range len(s.pool) {
		err = errors.Join(err, (<-s.pool).close(ctx))
	}
	return errors.Join(err, s.compiled.Close(ctx), s.cache.Close(ctx))
}

// extismShared is an instance of the pool.
type extismShared struct {
	extismInstance
	calls int // answered so far
}

// extismPooled takes an instance from the pool for each call, and puts it back unchanged.
type extismPooled struct {
	session *extismSession
	last    int // how many calls the instance of the last call had answered by then
}

func (*extismPooled) close(context.Context) error { return nil }

func (p *extismPooled) call(ctx context.Context, in input) ([]byte, error) {
	instance := <-p.session.pool
	defer func() { p.session.pool <- instance }()
	output, err := instance.call(ctx, in)
	instance.calls++
	p.last = instance.calls
	return bytes.Clone(output), err // the next caller's call overwrites it
}

func (p *extismPooled) calls() int { return p.last }

// callFresh creates an instance for each call.
func (s *extismSession) callFresh(ctx context.Context, in input) ([]byte, error) {
	instance, err := s.instance(ctx)
	if err != nil {
		return nil, err
	}
	output, err := instance.call(ctx, in)
	// The output is in the memory of the instance.
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

package benchmark

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// plainWazero runs a WASI command as a Go program would that uses wazero and nothing else.
type plainWazero struct {
	module []byte
	// closeOnContextDone has wazero stop guests whose context ends.
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

// wazeroSession is its own caller's session: each call has its own instance.
type wazeroSession struct {
	cache    wazero.CompilationCache
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

func (s *wazeroSession) caller(context.Context) (caller, error) { return wazeroCaller{session: s}, nil }

func (s *wazeroSession) close(ctx context.Context) error {
	return errors.Join(s.runtime.Close(ctx), s.cache.Close(ctx))
}

// run runs the command once, in a new instance, and returns what it printed.
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

type wazeroCaller struct {
	stateless
	session *wazeroSession
}

func (c wazeroCaller) call(ctx context.Context, in input) ([]byte, error) {
	return c.session.run(ctx, bytes.NewReader(in.expected.Input))
}

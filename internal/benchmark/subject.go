package benchmark

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// backend runs one guest in one way.
type backend interface {
	// open makes the guest ready to be called. It caches compiled code in dir.
	open(ctx context.Context, dir string) (session, error)
}

// session is a guest that is ready to be called. It is safe for concurrent use until it is closed.
type session interface {
	// caller returns a caller for one goroutine.
	caller(ctx context.Context) (caller, error)
	close(ctx context.Context) error
}

// caller calls a guest.
type caller interface {
	// call returns the guest's answer, which the next call may overwrite.
	call(ctx context.Context, in input) ([]byte, error)
	close(ctx context.Context) error
}

// input is the input of one call in the forms that the schemes take.
type input struct {
	expected  guests.Call
	arguments tool.Arguments
}

func newInput(length int) (input, error) {
	call := guests.NewCall(length)
	arguments, err := tool.ParseArguments(string(call.Input))
	if err != nil {
		return input{}, fmt.Errorf("benchmark: %w", err)
	}
	return input{call, arguments}, nil
}

// callFunc is a caller with nothing to close. One that shares no state with others is its own
// session and backend.
type callFunc func(ctx context.Context, in input) ([]byte, error)

func (f callFunc) open(context.Context, string) (session, error)      { return f, nil }
func (f callFunc) caller(context.Context) (caller, error)             { return f, nil }
func (f callFunc) call(ctx context.Context, in input) ([]byte, error) { return f(ctx, in) }
func (callFunc) close(context.Context) error                          { return nil }

// closeAll closes sessions, callers or the like.
func closeAll[C interface{ close(context.Context) error }](ctx context.Context, all []C) (err error) {
	for _, c := range all {
		err = errors.Join(err, c.close(ctx))
	}
	return err
}

// subject is a guest and all ways to run it.
type subject struct {
	language guests.Language
	command  []byte // the tool as a WASI command; nil where there is none
	plugin   []byte // the tool as an Extism plug-in; nil where there is none
	program  string // the tool as a native program; empty where there is none
	ours     caissonTool
	plugged  caissonTool // the plug-in, where there is one
}

// contender is a backend with its name and the folder for its compiled code.
type contender struct {
	name    Scheme
	backend backend
	dir     string
}

// contenders returns all contenders, ours first.
func (s *subject) contenders(dir string) []contender {
	found := []contender{{CaissonPlugin, s.plugged, filepath.Join(dir, "caisson")}}
	if s.command != nil {
		found = []contender{
			{Caisson, s.ours, filepath.Join(dir, "caisson")},
			{Wazero, plainWazero{module: s.command}, filepath.Join(dir, "wazero")},
		}
	}
	if s.plugin != nil {
		found = append(found, contender{ExtismFresh, extismPlugin{module: s.plugin}, filepath.Join(dir, "extism")})
	}
	if s.plugin != nil && s.command != nil && s.language != guests.GoWarm { // which is the same plug-in as Go's
		found = append(found, contender{CaissonPlugin, s.plugged, filepath.Join(dir, "caisson")})
	}
	if s.plugin != nil {
		found = append(found,
			contender{ExtismReused, extismPlugin{module: s.plugin, reused: true}, filepath.Join(dir, "extism")})
	}
	found = append(found, contender{name: Native, backend: callFunc(callNative)})
	if s.program != "" {
		found = append(found, contender{name: Process, backend: process(s.program)})
	}
	return found
}

// openAll opens all contenders. The caller must close the returned schemes, even after an error.
func (s *subject) openAll(ctx context.Context, dir string) (schemes []scheme, err error) {
	for _, c := range s.contenders(dir) {
		opened, err := c.backend.open(ctx, c.dir)
		if err != nil {
			return schemes, err
		}
		schemes = append(schemes, scheme{c.name, opened})
	}
	return schemes, nil
}

// newSubject gets the modules of a guest. For Go, this needs a toolchain and a checkout.
func newSubject(
	ctx context.Context, language guests.Language, dir string, compiler runtime.Compiler,
) (*subject, error) {
	command, err := guests.Command(ctx, language, dir)
	if errors.Is(err, guests.ErrNoGuest) {
		return &subject{language: language}, nil
	}
	if err != nil {
		return nil, err
	}
	ours, err := newCaissonTool(filepath.Join(dir, "tool-"+string(language)), manifestOf(language, modules.ABIWASI),
		command, compiler)
	if err != nil {
		return nil, err
	}
	return &subject{language: language, command: command, ours: ours}, nil
}

// plug gets the guest's plug-in.
func (s *subject) plug(ctx context.Context, dir string, compiler runtime.Compiler) error {
	plugin, err := guests.Plugin(ctx, pluginLanguage(s.language), dir)
	if err != nil {
		return err
	}
	plugged, err := newCaissonTool(filepath.Join(dir, "plugin-"+string(s.language)),
		manifestOf(s.language, modules.ABIExtism), plugin, compiler)
	if err != nil {
		return err
	}
	s.plugin, s.plugged = plugin, plugged
	return nil
}

// pluginLanguage returns the language of the plug-in that a guest is compared with.
func pluginLanguage(language guests.Language) guests.Language {
	if language == guests.GoWarm {
		return guests.Go // Extism takes no snapshots, so there is nothing to warm up
	}
	return language
}

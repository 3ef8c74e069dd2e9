package benchmark

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// backend runs one guest in one way.
type backend interface {
	// open makes the guest ready to be called. It keeps compiled code in dir and uses
	// what an earlier open left there.
	open(ctx context.Context, dir string) (session, error)
}

// session is a guest that is ready. It is safe for concurrent use until it is closed.
type session interface {
	// caller returns a caller, which is for one goroutine.
	caller(ctx context.Context) (caller, error)
	close(ctx context.Context) error
}

// caller calls a guest.
type caller interface {
	// call returns what the guest answered, which may be overwritten by the next call.
	call(ctx context.Context, in input) ([]byte, error)
	close(ctx context.Context) error
}

// input is one call's input in the forms in which the schemes take it.
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

// stateless is the part of a caller that has nothing to close.
type stateless struct{}

func (stateless) close(context.Context) error { return nil }

// subject is a guest and all ways to run it.
type subject struct {
	language guests.Language
	command  []byte // the tool as a WASI command
	plugin   []byte // the tool as an Extism plug-in; nil where there is none
	program  string // the tool as a native program; empty where there is none
	ours     caissonTool
}

// contender is a backend by its name, and the folder for its compiled code.
type contender struct {
	name    Scheme
	backend backend
	dir     string
}

// compiled returns the contenders that compile the guest, ours first.
func (s *subject) compiled(dir string) []contender {
	found := []contender{
		{Caisson, s.ours, filepath.Join(dir, "caisson")},
		{Wazero, plainWazero{module: s.command}, filepath.Join(dir, "wazero")},
	}
	if s.plugin != nil {
		found = append(found, contender{ExtismFresh, extismPlugin{module: s.plugin}, filepath.Join(dir, "extism")})
	}
	return found
}

// contenders returns all contenders.
func (s *subject) contenders(dir string) []contender {
	found := s.compiled(dir)
	if s.plugin != nil {
		found = append(found, contender{ExtismReused, extismPlugin{module: s.plugin, reused: true, shared: true}, filepath.Join(dir, "extism")})
	}
	found = append(found, contender{name: Native, backend: native{}})
	if s.program != "" {
		found = append(found, contender{name: Process, backend: process{program: s.program}})
	}
	return found
}

// openAll opens all contenders. Close what it returns, also after an error.
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

func closeAll(ctx context.Context, schemes []scheme) (err error) {
	for _, s := range schemes {
		err = errors.Join(err, s.session.close(ctx))
	}
	return err
}

// newSubject gets a guest's modules. Without a Go toolchain and a checkout it fails for Go.
func newSubject(ctx context.Context, language guests.Language, dir string, compiler runtime.Compiler) (*subject, error) {
	command, err := guests.Command(ctx, language, dir)
	if err != nil {
		return nil, err
	}
	ours, err := newCaissonTool(filepath.Join(dir, "tool-"+string(language)), manifestOf(language), command, compiler)
	if err != nil {
		return nil, err
	}
	return &subject{language: language, command: command, ours: ours}, nil
}

// pluginLanguage is the language of the plug-in that a guest is compared with.
func pluginLanguage(language guests.Language) guests.Language {
	if language == guests.GoWarm {
		return guests.Go // Extism starts a plug-in anew or not at all, so there is nothing to warm
	}
	return language
}

package benchmark

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
)

// library holds tools that are compiled but not called.
type library struct {
	add   func(module []byte) error
	close func(ctx context.Context) error
}

// library returns an empty library of a contender.
func (s *subject) library(ctx context.Context, c contender) (library, error) {
	switch c.name {
	case Caisson:
		rt, err := runtime.New(ctx, runtime.Options{CacheDir: c.dir, Compiler: s.ours.compiler})
		if err != nil {
			return library{}, err
		}
		added := 0
		return library{close: rt.Close, add: func(module []byte) error {
			added++
			folder := filepath.Join(s.ours.folder, fmt.Sprintf("variant-%d", added))
			written, err := newCaissonTool(folder, manifestOf(s.language, manifests.ABIWASI), module, s.ours.compiler)
			if err != nil {
				return err
			}
			_, err = written.load(ctx, rt)
			return err
		}}, nil
	case Wazero:
		held, err := plainWazero{module: s.command}.start(ctx, c.dir)
		if err != nil {
			return library{}, err
		}
		return library{close: held.close, add: func(module []byte) error {
			if _, err := held.runtime.CompileModule(ctx, module); err != nil {
				return fmt.Errorf("benchmark: wazero: %w", err)
			}
			return nil
		}}, nil
	}
	var plugins []session // each has its own runtime
	return library{
		close: func(ctx context.Context) error { return closeAll(ctx, plugins) },
		add: func(module []byte) error {
			opened, err := extismPlugin{module: module}.open(ctx, c.dir)
			if err == nil {
				plugins = append(plugins, opened)
			}
			return err
		},
	}, nil
}

// toolMemory measures how much memory each of count loaded tools takes, without the first tool of
// the library, which also loads the runtime.
func toolMemory(ctx context.Context, l library, module []byte, count int) (bytes int64, err error) {
	defer func() { err = errors.Join(err, l.close(ctx)) }()
	if err := l.add(module); err != nil {
		return 0, err
	}
	total, err := growth(func() (func() error, error) {
		for i := range count {
			other, err := variant(module, i)
			if err == nil {
				err = l.add(other)
			}
			if err != nil {
				return nil, err
			}
		}
		return func() error { return nil }, nil
	})
	return total / int64(count), err
}

var errNoExports = errors.New("benchmark: the module has no export section")

const (
	preambleBytes = 8 // magic number and version
	exportSection = 7
	exportMemory  = 2
)

// variant returns a module that does the same but is compiled separately: it exports its memory once
// more, under a name made from number. A custom section would not do, because runtimes may drop it
// and then consider two modules equal.
func variant(module []byte, number int) ([]byte, error) {
	for at := preambleBytes; at < len(module); {
		size, width := binary.Uvarint(module[at+1:])
		start := at + 1 + width
		if width <= 0 || size > uint64(len(module)-start) {
			return nil, errNoExports
		}
		end := start + int(size)
		if module[at] != exportSection {
			at = end
			continue
		}
		count, width := binary.Uvarint(module[start:end])
		if width <= 0 {
			return nil, errNoExports
		}
		section := binary.AppendUvarint(nil, count+1)
		section = append(section, module[start+width:end]...)
		name := "variant" + strconv.Itoa(number)
		section = append(binary.AppendUvarint(section, uint64(len(name))), name...)
		section = append(section, exportMemory, 0)
		head := binary.AppendUvarint(slices.Clone(module[:at+1]), uint64(len(section)))
		return slices.Concat(head, section, module[end:]), nil
	}
	return nil, errNoExports
}

package benchmark

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/caisson-run/caisson/runtime"
)

// library holds tools that are compiled and not called.
type library interface {
	add(ctx context.Context, module []byte) error
	close(ctx context.Context) error
}

// toolMemory measures what each of count tools takes beside a first one, for which the
// runtime itself had to be loaded.
func toolMemory(ctx context.Context, l library, module []byte, count int) (bytes int64, err error) {
	defer func() { err = errors.Join(err, l.close(ctx)) }()
	if err := l.add(ctx, module); err != nil {
		return 0, err
	}
	total, err := growth(func() (func() error, error) {
		for i := range count {
			other, err := variant(module, i)
			if err == nil {
				err = l.add(ctx, other)
			}
			if err != nil {
				return nil, err
			}
		}
		return func() error { return nil }, nil
	})
	return total / int64(count), err
}

// caissonLibrary holds tools of one runtime.
type caissonLibrary struct {
	session  *caissonSession
	tool     caissonTool
	manifest string
	added    int
}

// library needs an empty folder.
func (c caissonTool) library(ctx context.Context, dir, manifest string) (library, error) {
	rt, err := runtime.New(ctx, runtime.Options{CacheDir: filepath.Join(dir, "caisson"), Compiler: c.compiler})
	if err != nil {
		return nil, err
	}
	return &caissonLibrary{session: &caissonSession{runtime: rt}, tool: c, manifest: manifest}, nil
}

func (l *caissonLibrary) add(ctx context.Context, module []byte) error {
	l.added++
	folder := filepath.Join(l.tool.folder, fmt.Sprintf("variant-%d", l.added))
	written, err := newCaissonTool(folder, l.manifest, module, l.tool.compiler)
	if err != nil {
		return err
	}
	_, err = written.load(ctx, l.session.runtime)
	return err
}

func (l *caissonLibrary) close(ctx context.Context) error { return l.session.close(ctx) }

// wazeroLibrary holds modules of one runtime.
type wazeroLibrary struct{ *wazeroSession }

func (l wazeroLibrary) add(ctx context.Context, module []byte) error {
	if _, err := l.runtime.CompileModule(ctx, module); err != nil {
		return fmt.Errorf("benchmark: wazero: %w", err)
	}
	return nil
}

// extismLibrary holds plug-ins, each of which has a runtime of its own.
type extismLibrary struct {
	dir     string
	plugins []session
}

func (l *extismLibrary) add(ctx context.Context, module []byte) error {
	opened, err := extismPlugin{module: module}.open(ctx, l.dir)
	if err != nil {
		return err
	}
	l.plugins = append(l.plugins, opened)
	return nil
}

func (l *extismLibrary) close(ctx context.Context) (err error) {
	for _, plugin := range l.plugins {
		err = errors.Join(err, plugin.close(ctx))
	}
	return err
}

var errNoExports = errors.New("benchmark: the module has no section of exports")

const (
	preambleBytes = 8 // magic number and version
	exportSection = 7
	exportMemory  = 2
)

// variant returns a module that does the same and has other code to whoever compiles it:
// it exports its memory once more, under a name made of number. A custom section would not
// do, since runtimes may drop those and find two modules equal.
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

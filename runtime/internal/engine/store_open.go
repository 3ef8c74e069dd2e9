package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tetratelabs/wazero"
)

// openStore makes the store, for which a child that compiles needs a directory even
// where none is kept.
func (e *Engine) openStore(ctx context.Context, options Options) (err error) {
	if options.CacheBytes < 0 {
		return fmt.Errorf("its size of %d bytes is negative", options.CacheBytes)
	}
	switch {
	case options.CacheDir != "":
		e.store, err = keptStore(options.CacheDir, options.CacheBytes)
	case e.compiler.Executable != "":
		e.store, err = e.scratchStore(ctx)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	if err := e.store.sweep(time.Now()); err != nil {
		return err
	}
	e.view, err = newView(*e.store, func(directory string) (err error) {
		e.cache, err = wazero.NewCompilationCacheWithDir(directory)
		return err
	})
	return err
}

// keptStore opens a store that later processes use too.
func keptStore(directory string, limit int64) (*store, error) {
	// The working directory may change, and wazero would not notice.
	directory, err := filepath.Abs(directory)
	if err != nil {
		return nil, err
	}
	if limit == 0 {
		limit = defaultCacheBytes
	}
	return &store{directory: directory, kept: true, limit: limit}, privateDirectory(directory)
}

// scratchStore makes a store that goes with the engine.
func (e *Engine) scratchStore(ctx context.Context) (*store, error) {
	folder, err := filepath.Abs(os.TempDir())
	if err != nil {
		return nil, err
	}
	if err := sweepScratch(folder, time.Now()); err != nil {
		// They are other processes' and not in the way.
		e.logger.WarnContext(ctx, "directories of killed processes remain", "err", err)
	}
	directory, err := os.MkdirTemp(folder, scratchPattern)
	if err != nil {
		return nil, err
	}
	return &store{directory: directory}, nil
}

// closeStore closes what openStore has opened, which may be a part.
func (e *Engine) closeStore(ctx context.Context) error {
	var failures []error
	if e.cache != nil {
		failures = append(failures, e.cache.Close(ctx))
	}
	if e.view != nil {
		failures = append(failures, e.view.remove())
	}
	if e.store != nil && !e.store.kept {
		failures = append(failures, os.RemoveAll(e.store.directory))
	}
	return errors.Join(failures...)
}

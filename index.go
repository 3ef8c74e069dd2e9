package caisson

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/caisson-run/caisson/internal/folder"
	"github.com/caisson-run/caisson/manifests"
)

// indexName is the name of the index in [Options.IndexDir].
const indexName = "manifests"

// index is the index of manifests and where it is kept.
type index struct {
	manifests *manifests.Index
	dir       string       // "" if it is not kept
	logger    *slog.Logger // may be nil
}

// openIndex reads the index. If there is none that can be trusted, it is empty.
func (o Options) openIndex(ctx context.Context) index {
	i := index{manifests.NewIndex("", nil), o.IndexDir, o.Logger}
	if i.dir == "" {
		return i
	}
	version, err := programVersion()
	if err != nil {
		i.warn(ctx, err)
		i.dir = ""
		return i
	}
	text, err := folder.ReadProtected(i.dir, indexName, manifests.MaxIndexBytes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		i.warn(ctx, err)
	}
	i.manifests = manifests.NewIndex(version, text)
	return i
}

// programVersion identifies this program: another one may have other rules for manifests.
func programVersion() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	version := ""
	if build, ok := debug.ReadBuildInfo(); ok {
		version = build.Main.Version
	}
	return fmt.Sprintf("%s %d %d", version, info.Size(), info.ModTime().UnixNano()), nil
}

// keep writes the index if it has changed. A failure costs only the time of parsing again.
func (i index) keep(ctx context.Context) {
	if i.dir == "" {
		return
	}
	text := i.manifests.Text()
	if text == nil {
		return
	}
	root, err := folder.Make(i.dir)
	if err == nil {
		err = folder.Write(root, indexName, text)
		_, swept := folder.Look(root)
		err = errors.Join(err, swept, root.Close())
	}
	if err != nil {
		i.warn(ctx, err)
	}
}

func (i index) warn(ctx context.Context, err error) {
	if i.logger != nil {
		i.logger.WarnContext(ctx, "the index of manifests cannot be used", "folder", i.dir, "err", err)
	}
}

package files_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
)

// benchDir is a directory of n files, in subdirectories of 100.
func benchDir(b *testing.B, n int) files.Mount {
	b.Helper()
	dir := b.TempDir()
	for i := range n {
		sub := fmt.Sprintf("%s/%d", dir, i/100)
		if i%100 == 0 {
			require.NoError(b, os.Mkdir(sub, 0o755))
		}
		require.NoError(b, os.WriteFile(fmt.Sprintf("%s/f%d", sub, i), nil, 0o600))
	}
	host, err := permission.ParseHostTemplate(dir)
	require.NoError(b, err)
	return files.Mount{Guest: guestPath("/project"), Host: host, Access: manifests.AccessReadWrite}
}

// BenchmarkOpenView is what a call with one mount costs before it does anything.
func BenchmarkOpenView(b *testing.B) {
	store, mounts := files.NewStore(nil), []files.Mount{benchDir(b, 1)}
	for b.Loop() {
		view, err := openIn(context.Background(), store, mounts, nil, files.Limits{})
		require.NoError(b, err)
		require.NoError(b, view.Close())
	}
}

// BenchmarkFirstWrite is what the first change of a call costs: the directory is measured.
func BenchmarkFirstWrite(b *testing.B) {
	for _, n := range []int{1, 100, 9_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			store, mounts := files.NewStore(nil), []files.Mount{benchDir(b, n)}
			for b.Loop() {
				view, err := openIn(context.Background(), store, mounts, nil, files.Limits{})
				require.NoError(b, err)
				require.NoError(b, write(view.Preopens()[1].Dir, "f", "text"))
				require.NoError(b, view.Close())
			}
		})
	}
}

func BenchmarkOpenReadClose(b *testing.B) {
	view, err := openIn(context.Background(), files.NewStore(nil), []files.Mount{benchDir(b, 1)}, nil, files.Limits{})
	require.NoError(b, err)
	defer view.Close()
	d := view.Preopens()[1].Dir
	for b.Loop() {
		_, err := read(d, "0/f0")
		require.NoError(b, err)
	}
}

func BenchmarkWrite(b *testing.B) {
	view, err := openIn(context.Background(), files.NewStore(nil), []files.Mount{benchDir(b, 1)}, nil, files.Limits{})
	require.NoError(b, err)
	defer view.Close()
	f, _, err := view.Preopens()[1].Dir.Open("f", guestfiles.OpenOptions{Write: true, Create: true})
	require.NoError(b, err)
	text := make([]byte, 512)
	for b.Loop() {
		_, err := f.WriteAt(text, 0)
		require.NoError(b, err)
	}
}

func BenchmarkStat(b *testing.B) {
	view, err := openIn(context.Background(), files.NewStore(nil), []files.Mount{benchDir(b, 1)}, nil, files.Limits{})
	require.NoError(b, err)
	defer view.Close()
	d := view.Preopens()[1].Dir
	for b.Loop() {
		_, err := d.Stat("0/f0", true)
		require.NoError(b, err)
	}
}

// BenchmarkCall is a call that looks at and reads ten files, each of which its record lists.
func BenchmarkCall(b *testing.B) {
	store, mounts := files.NewStore(nil), []files.Mount{benchDir(b, 1)}
	for b.Loop() {
		view, err := openIn(context.Background(), store, mounts, nil, files.Limits{})
		require.NoError(b, err)
		d := view.Preopens()[1].Dir
		for range 10 {
			_, err := d.Stat("0/f0", true)
			require.NoError(b, err)
			_, err = read(d, "0/f0")
			require.NoError(b, err)
		}
		require.NoError(b, view.Close())
	}
}

// BenchmarkDenied is what a refusal costs: a guest may ask for as many as it has time for.
func BenchmarkDenied(b *testing.B) {
	view, err := openIn(context.Background(), files.NewStore(nil), []files.Mount{benchDir(b, 1)}, nil, files.Limits{Tool: "guest"})
	require.NoError(b, err)
	defer view.Close()
	d := view.Preopens()[0].Dir
	names := make([]string, 100)
	for i := range names {
		names[i] = fmt.Sprintf("etc/%d/passwd", i)
	}
	for i := 0; b.Loop(); i++ {
		_, err := d.Stat(names[i%len(names)], true)
		require.Error(b, err)
	}
}

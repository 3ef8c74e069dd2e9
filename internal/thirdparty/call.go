package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// bench holds one program as a tool, and a directory for each path that its manifest requests.
type bench struct {
	manifest *manifests.Manifest
	host     *caisson.Host
	dir      string
}

// benchOptions says where a program's code is kept, and by what it is compiled.
type benchOptions struct {
	dir, cache string
	compiler   runtime.Compiler
}

// open loads a program's manifest, and grants what it requests.
func open(ctx context.Context, manifest string, o benchOptions) (*bench, error) {
	m, err := manifests.Load(manifest)
	if err != nil {
		return nil, err
	}
	b := &bench{manifest: m, dir: o.dir}
	var files []manifests.FileGrant
	for _, permission := range m.Permissions.Files {
		dir := filepath.Join(o.dir, filepath.FromSlash(permission.Path))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		files = append(files, manifests.FileGrant{Path: permission.Path, Host: dir, Access: permission.Access})
	}
	policy := &manifests.Policy{Profile: "lenient", Grants: []manifests.Grant{{Tools: []string{m.Name}, Files: files}}}
	b.host, err = caisson.Open(ctx, caisson.Options{
		Policies: []*manifests.Policy{policy},
		Tools:    []string{manifest},
		Runtime:  runtime.Options{CacheDir: o.cache, Compiler: o.compiler},
		Executor: executor.Options{Reuse: executor.Reuse{Scope: executor.ReuseNone}},
	})
	return b, err
}

// write writes the files of a test into the granted directories.
func (b *bench) write(test manifests.Test) error {
	for guest, content := range test.Files {
		file := b.file(guest)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// file returns the host's path of a file that the program sees.
func (b *bench) file(guest string) string { return filepath.Join(b.dir, filepath.FromSlash(guest)) }

// call calls the tool with the arguments of a test.
func (b *bench) call(ctx context.Context, test manifests.Test) (tool.Record, error) {
	report, err := b.host.Execute(ctx, executor.Batch{Calls: []tool.Call{
		{ID: "call", Type: tool.FunctionCall, Function: tool.Function{Name: b.manifest.Name, Arguments: string(test.Arguments)}},
	}})
	if err != nil {
		return tool.Record{}, err
	}
	if len(report.Records) != 1 {
		return tool.Record{}, fmt.Errorf("the call has %d records", len(report.Records))
	}
	return report.Records[0], nil
}

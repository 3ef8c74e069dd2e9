// Package cases runs the tests that stand in the manifests of tools. It goes through everything that
// a model's call goes through.
package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// Run runs one test of a tool and returns in what its result differs from what the test expects. Dir
// is an empty directory, in which each directory that the tool requests gets one of its own. Nothing
// else but context values is granted.
func Run(ctx context.Context, rt *runtime.Runtime, m *manifests.Manifest, test manifests.Test, dir string) error {
	w := workspace{}
	// Whoever runs the tests has approved of what is destructive, too.
	grants := manifests.Grants{Context: manifests.GrantContext(m.Context...), Approved: []manifests.ApprovalGrant{{}}}
	for i, permission := range m.Permissions.Files {
		host := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(host, 0o700); err != nil {
			return fmt.Errorf("cases: %w", err)
		}
		w[permission.Path] = host
		grants.Files = append(grants.Files, manifests.FileGrant{Path: permission.Path, Host: host, Access: permission.Access})
	}
	if err := w.write(test.Files); err != nil {
		return fmt.Errorf("cases: %w", err)
	}
	loaded, err := rt.Load(ctx, m, grants)
	if err != nil {
		return err
	}
	record, err := call(ctx, loaded, test)
	if err != nil {
		return err
	}
	return errors.Join(differences(test.Expect, record.Result), w.compare(test.Expect.Files))
}

// call makes the call of a test.
func call(ctx context.Context, loaded *runtime.Tool, test manifests.Test) (tool.Record, error) {
	tools := registry.New()
	if err := tools.Register("cases", loaded); err != nil {
		return tool.Record{}, err
	}
	run, err := executor.New(tools, executor.Options{})
	if err != nil {
		return tool.Record{}, err
	}
	session, err := run.NewSession(executor.SessionOptions{Context: test.Context})
	if err != nil {
		return tool.Record{}, err
	}
	function := tool.Function{Name: loaded.Manifest().Name, Arguments: string(test.Arguments)}
	report, err := run.Execute(ctx, executor.Batch{Session: session, Calls: []tool.Call{{ID: "test", Type: tool.FunctionCall, Function: function}}})
	if err != nil {
		return tool.Record{}, err
	}
	return report.Records[0], nil
}

// errDiffers is wrapped by the errors about a result that a test did not expect.
var errDiffers = errors.New("cases: not as expected")

// differences returns what is not as expected in a result.
func differences(want manifests.Expect, got tool.Result) error {
	var found []error
	differ := func(what string, got, want any) {
		found = append(found, fmt.Errorf("%w: %s: got %v, want %v", errDiffers, what, got, want))
	}
	if want.Success != nil && *want.Success != got.Success {
		differ("success", fmt.Sprintf("%t (%s)", got.Success, got.Error), *want.Success)
	}
	if want.Kind != "" && want.Kind != string(got.Kind) {
		differ("kind", fmt.Sprintf("%q (%s)", got.Kind, got.Error), want.Kind)
	}
	if want.Output != nil && *want.Output != got.Output {
		differ("output", fmt.Sprintf("%q", got.Output), fmt.Sprintf("%q", *want.Output))
	}
	if !strings.Contains(got.Error, want.Error) {
		differ("error", fmt.Sprintf("%q", got.Error), fmt.Sprintf("a text with %q", want.Error))
	}
	if want.Data != nil && !sameJSON(want.Data, got.Data) {
		differ("data", string(got.Data), string(want.Data))
	}
	return errors.Join(found...)
}

// sameJSON reports whether two texts are the same value in JSON.
func sameJSON(a, b []byte) bool {
	var one, other any
	return json.Unmarshal(a, &one) == nil && json.Unmarshal(b, &other) == nil && reflect.DeepEqual(one, other)
}

// workspace has the host's directory for each directory of a tool.
type workspace map[string]string

// file returns the host's path of a file that a tool sees. The manifest's reader made sure that it is
// in one of the tool's directories.
func (w workspace) file(guest string) string {
	for mount, dir := range w {
		if below, ok := strings.CutPrefix(guest, mount+"/"); ok {
			return filepath.Join(dir, filepath.FromSlash(below))
		}
	}
	return ""
}

func (w workspace) write(files map[string]string) error {
	for guest, content := range files {
		file := w.file(guest)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// compare returns which files are not as expected.
func (w workspace) compare(files map[string]string) error {
	var found []error
	for guest, want := range files {
		got, err := os.ReadFile(w.file(guest))
		if err != nil {
			found = append(found, fmt.Errorf("%w: file %s: %w", errDiffers, guest, err))
		} else if string(got) != want {
			found = append(found, fmt.Errorf("%w: file %s: got %q, want %q", errDiffers, guest, got, want))
		}
	}
	return errors.Join(found...)
}

// Package cases runs the tests in the manifests of tools. A test's call takes the same path as a model's call.
package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// Run runs one test of a tool and returns the differences between its result and the expected one. Dir is an empty
// directory for the files.
func Run(ctx context.Context, rt *runtime.Runtime, m *manifests.Manifest, test manifests.Test, dir string) error {
	w, err := Open(ctx, rt, m, test, dir)
	if err != nil {
		return err
	}
	record, err := w.Call(ctx, test.Arguments)
	if err != nil {
		return err
	}
	return errors.Join(differences(test.Expect, record.Result), w.compare(test.Expect.Files))
}

// Workspace is a tool with its own directories and the files and context values of a test.
type Workspace struct {
	tool     *runtime.Tool
	executor *executor.Executor
	session  *executor.Session
	name     string
	dirs     map[string]string // host directories by guest path
	kept     []executor.Entry  // the calls that have ended
}

// Open makes a workspace in dir, an empty directory, in which each directory that the tool requests gets a separate
// one. Nothing else but context values is granted.
func Open(
	ctx context.Context, rt *runtime.Runtime, m *manifests.Manifest, test manifests.Test, dir string,
) (_ *Workspace, err error) {
	w := &Workspace{name: m.Name, dirs: map[string]string{}}
	// By running the tests, the user also approves destructive calls.
	grants := manifests.Grants{Context: manifests.GrantContext(m.Context...), Approved: []manifests.Binding{{}},
		RecordInputs: true}
	for i, request := range m.Permissions.Files {
		host := filepath.Join(dir, strconv.Itoa(i))
		if err := os.Mkdir(host, 0o700); err != nil {
			return nil, fmt.Errorf("cases: %w", err)
		}
		w.dirs[request.Path.String()] = host
		grants.Files = append(grants.Files,
			manifests.FileGrant{Path: request.Path, Host: permission.NewHostTemplate(host), Access: request.Access})
	}
	if err := w.write(test.Files); err != nil {
		return nil, fmt.Errorf("cases: %w", err)
	}
	if w.tool, err = rt.Load(ctx, m, grants); err != nil {
		return nil, err
	}
	tools := registry.New()
	if err := tools.Register("cases", w.tool); err != nil {
		return nil, err
	}
	options := executor.Options{Recorder: w, Reuse: executor.Reuse{Scope: executor.ReuseNone}}
	if w.executor, err = executor.New(tools, options); err != nil {
		return nil, err
	}
	w.session, err = w.executor.NewSession(executor.SessionOptions{Context: test.Context})
	return w, err
}

func (w *Workspace) Call(ctx context.Context, arguments json.RawMessage) (tool.Record, error) {
	call := tool.Call{ID: "test", Type: tool.FunctionCall,
		Function: tool.Function{Name: w.name, Arguments: string(arguments)}}
	report, err := w.executor.Execute(ctx, executor.Batch{Session: w.session, Calls: []tool.Call{call}})
	if err != nil {
		return tool.Record{}, err
	}
	return report.Records[0], nil
}

// errDiffers is wrapped by the errors about a result that a test did not expect.
var errDiffers = errors.New("cases: not as expected")

// differences returns an error for each difference between a result and the expected one.
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

func sameJSON(a, b []byte) bool {
	var one, other any
	return json.Unmarshal(a, &one) == nil && json.Unmarshal(b, &other) == nil && reflect.DeepEqual(one, other)
}

// File returns the host's path of a file that the tool sees, or "" if it is in none of the tool's
// directories. The files of tests always are: the manifest's reader made sure.
func (w *Workspace) File(guest string) string {
	for mount, dir := range w.dirs {
		if below, ok := strings.CutPrefix(guest, mount+"/"); ok {
			return filepath.Join(dir, filepath.FromSlash(below))
		}
	}
	return ""
}

func (w *Workspace) write(files map[string]string) error {
	for guest, content := range files {
		file := w.File(guest)
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
func (w *Workspace) compare(files map[string]string) error {
	var found []error
	for guest, want := range files {
		got, err := os.ReadFile(w.File(guest))
		if err != nil {
			found = append(found, fmt.Errorf("%w: file %s: %w", errDiffers, guest, err))
		} else if string(got) != want {
			found = append(found, fmt.Errorf("%w: file %s: got %q, want %q", errDiffers, guest, got, want))
		}
	}
	return errors.Join(found...)
}

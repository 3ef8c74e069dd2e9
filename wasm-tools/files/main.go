// Command files implements the six file tools. Its command-line argument selects the tool.
//
// It does not confine paths. The host does: for this program, only the directory /project exists.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/caisson-run/caisson/wasm-tools/internal/call"
)

// project is where the manifests mount the project's directory.
const project = "/project"

// arguments is the union of the six tools' arguments.
type arguments struct {
	ProjectID string `json:"project_id"` // which the host has resolved already
	Path      string `json:"path"`
	Content   string `json:"content"`
	Encoding  string `json:"encoding"`
	Mode      string `json:"mode"`
	Pattern   string `json:"pattern"`
	Recursive bool   `json:"recursive"`
	Offset    int64  `json:"offset"`
	MaxBytes  int64  `json:"max_bytes"`
}

var operations = map[string]func(arguments) (call.Result, error){
	"read": read, "write": write, "delete": remove, "list": list, "exists": exists, "mkdir": mkdir,
}

func main() { call.Main(run) }

func run(a arguments) (call.Result, error) {
	if len(os.Args) != 2 || operations[os.Args[1]] == nil {
		return call.Result{}, errors.New("want one argument: read, write, delete, list, exists or mkdir")
	}
	done, err := operations[os.Args[1]](a)
	if err != nil {
		return call.Result{}, fmt.Errorf("%s: %s", a.Path, reason(err))
	}
	done.Success = true
	return done, nil
}

// resolve returns a path that is relative to the project.
func resolve(name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(project, name)
}

// reason words a failure for a model, without the path, which the caller adds as the model wrote it.
func reason(err error) string {
	switch {
	case errors.Is(err, syscall.ENOTEMPTY): // before fs.ErrExist, which it matches too
		return "the directory is not empty; set recursive to delete what is in it"
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file or directory"
	case errors.Is(err, fs.ErrExist):
		return "it exists already"
	case errors.Is(err, fs.ErrPermission):
		return "not permitted: only paths inside the project can be used"
	case errors.Is(err, syscall.EROFS):
		return "the project can only be read"
	case errors.Is(err, syscall.ENOSPC):
		return "the project has no room left"
	case errors.Is(err, syscall.EISDIR):
		return "it is a directory"
	case errors.Is(err, syscall.ENOTDIR):
		return "a part of the path is not a directory"
	}
	if inPath, ok := errors.AsType[*fs.PathError](err); ok {
		return strings.ToLower(inPath.Err.Error())
	}
	return err.Error()
}

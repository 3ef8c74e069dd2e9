// Package extism reads the manifests of Extism, which are JSON, so that plug-ins are tools as they
// are:
//
//	translated, err := extism.Load("plugin.json")
//
// It only translates. What Extism's manifest allows a plug-in, the tool requests, and the operator
// grants it as for any tool.
package extism

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	extism "github.com/extism/go-sdk"

	"github.com/caisson-run/caisson/internal/hostfile"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
)

// Translated is what a manifest of Extism says to Caisson.
type Translated struct {
	// Manifests are those of the tools, one for each function of the plug-in, in the module's order.
	// A tool's name is that of the file without its extension, "_", and that of the function. Its one
	// parameter, input, is the plug-in's input.
	Manifests []*manifests.Manifest
	// Notes say what has no equivalent, or must be granted by the operator.
	Notes []manifests.Problem
}

// NoEquivalent is the kind of a note about what Caisson does not do, or not by a manifest.
const NoEquivalent manifests.ProblemKind = "no_equivalent"

// IsManifest reports whether a file is a manifest of Extism: JSON with the member "wasm" and without
// "schema", in a file whose name ends in .json. It is false for a file that cannot be read.
func IsManifest(path string) bool {
	if !strings.EqualFold(filepath.Ext(path), ".json") {
		return false
	}
	source, err := readFile(path, manifests.MaxBytes)
	if err != nil {
		return false
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(bytes.TrimPrefix(source, []byte("\ufeff")), &members) != nil {
		return false
	}
	return members["wasm"] != nil && members["schema"] == nil
}

// Load reads a manifest of Extism and the exports of its module. The error is a [*manifests.Error] if
// the manifest cannot be translated, and wraps [manifests.ErrFile] if it cannot be read.
func Load(path string) (*Translated, error) {
	source, err := readFile(path, manifests.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", manifests.ErrFile, err)
	}
	t := &translation{file: path, source: strings.TrimPrefix(string(source), "\ufeff"), places: map[string]int{}}
	if err := t.read(); err != nil {
		return nil, err
	}
	return t.translate()
}

// readFile reads a regular file of at most some bytes.
func readFile(path string, most int64) (source []byte, err error) {
	file, info, err := hostfile.Open(path, hostfile.Follow)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if info.Size() > most {
		return nil, fmt.Errorf("%s has %d bytes, the limit is %d", path, info.Size(), most)
	}
	source, err = io.ReadAll(io.LimitReader(file, most+1))
	if int64(len(source)) > most {
		return nil, fmt.Errorf("%s grew over the limit of %d bytes while it was read", path, most)
	}
	return source, err
}

// translation is a manifest that is being translated.
type translation struct {
	file   string
	source string
	places map[string]int // offsets of members in the source, such as that of "memory.max_pages"
	said   extism.Manifest
	module extism.WasmFile
	notes  []manifests.Problem
}

// read parses the manifest, and checks that it has one module in a file.
func (t *translation) read() error {
	if err := t.readMembers(); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(t.source), &t.said); err != nil {
		return t.mistyped(err)
	}
	switch len(t.said.Wasm) {
	case 1:
	case 0:
		return t.refused("wasm", manifests.Missing, "the manifest has no module", `write {"wasm": [{"path": "plugin.wasm"}]}`)
	default:
		return t.refused("wasm", manifests.NotEnforced, "this version of Caisson does not link several modules", "link them into one module when they are built")
	}
	var ok bool
	if t.module, ok = t.said.Wasm[0].(extism.WasmFile); !ok {
		return t.refused("wasm[0]", manifests.NotEnforced, "this version of Caisson loads modules from files alone", "write the path of a file")
	}
	return nil
}

// maxTools is how many tools are made of a manifest at most.
const maxTools = 256

// functions returns the functions of the module, which must be in the manifest's folder.
func (t *translation) functions() ([]string, error) {
	root, err := os.OpenRoot(filepath.Dir(t.file))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", manifests.ErrFile, err)
	}
	defer root.Close()
	path := t.module.Path
	file, info, err := hostfile.OpenIn(root, filepath.FromSlash(path), hostfile.Follow)
	if err != nil {
		if failed, ok := errors.AsType[*fs.PathError](err); ok {
			err = failed.Err
		}
		return nil, t.refused("wasm[0].path", manifests.InvalidValue, fmt.Sprintf("the module %q cannot be read: %v", path, err), "write the path of a module in the manifest's folder or below it, relative to that folder")
	}
	defer file.Close()
	if info.Size() > runtime.MaxModuleBytes {
		return nil, t.refused("wasm[0].path", manifests.InvalidValue, fmt.Sprintf("the module has %d bytes, the limit is %d", info.Size(), runtime.MaxModuleBytes), "build a smaller module")
	}
	source, err := io.ReadAll(io.LimitReader(file, runtime.MaxModuleBytes))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", manifests.ErrFile, err)
	}
	functions, err := runtime.PluginFunctions(source)
	if err != nil {
		return nil, t.refused("wasm[0].path", manifests.InvalidValue, err.Error(), "name an Extism plug-in")
	}
	if len(functions) > maxTools {
		return nil, t.refused("wasm[0].path", manifests.NotEnforced, fmt.Sprintf("the module exports %d functions that could be tools, the limit is %d", len(functions), maxTools), "write manifests of Caisson for those that models need: caisson inspect "+path+" prints one to start from")
	}
	return functions, nil
}

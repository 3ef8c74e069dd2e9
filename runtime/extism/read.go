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
	"os"
	"path/filepath"
	"slices"
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

	from *translation
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

// known are the members that are translated or noted.
var known = []string{"wasm", "memory", "config", "allowed_hosts", "allowed_paths", "timeout_ms"}

// Load reads a manifest of Extism and the exports of its module. The error is a [*manifests.Error] if
// the manifest cannot be translated, and wraps [manifests.ErrFile] if it cannot be read.
func Load(path string) (*Translated, error) {
	source, err := readFile(path, manifests.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", manifests.ErrFile, err)
	}
	t := &translation{file: path, source: bytes.TrimPrefix(source, []byte("\ufeff"))}
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
	source []byte
	said   extism.Manifest
	module extism.WasmFile
	notes  []manifests.Problem
}

// read parses the manifest, and checks that it has one module in a file.
func (t *translation) read() error {
	var members map[string]json.RawMessage // the type of extism/go-sdk ignores those that it does not know
	if err := errors.Join(json.Unmarshal(t.source, &t.said), json.Unmarshal(t.source, &members)); err != nil {
		return t.refused("", manifests.Syntax, "this is no manifest of Extism: "+err.Error(), `write JSON such as {"wasm": [{"path": "plugin.wasm"}]}`)
	}
	for name := range members {
		if !slices.Contains(known, name) {
			t.note(name, fmt.Sprintf("%q has no equivalent, and is not used", name), "remove it, or write a manifest of Caisson")
		}
	}
	switch all := t.said.Wasm; len(all) {
	case 1:
	case 0:
		return t.refused("wasm", manifests.Missing, "the manifest has no module", `write {"wasm": [{"path": "plugin.wasm"}]}`)
	default:
		return t.refused("wasm", manifests.NotEnforced, "this version of Caisson does not link several modules", "link them into one module when they are built")
	}
	switch module := t.said.Wasm[0].(type) {
	case extism.WasmFile:
		t.module = module
		return nil
	case extism.WasmUrl:
		return t.refused("url", manifests.NotEnforced, "this version of Caisson does not download modules", "download it once, write its path, and pin its SHA-256 as hash")
	}
	return t.refused("data", manifests.NotEnforced, "this version of Caisson does not load modules that are written into a manifest", "write the module to a file, and its path here")
}

// refused returns the error of a manifest that cannot be translated.
func (t *translation) refused(key string, kind manifests.ProblemKind, message, fix string) error {
	return &manifests.Error{Problems: []manifests.Problem{t.problem(key, kind, message, fix)}}
}

func (t *translation) note(key, message, fix string) {
	t.notes = append(t.notes, t.problem(key, NoEquivalent, message, fix))
}

func (t *translation) problem(key string, kind manifests.ProblemKind, message, fix string) manifests.Problem {
	line := 1
	if at := bytes.Index(t.source, []byte(`"`+key+`"`)); key != "" && at >= 0 {
		line += bytes.Count(t.source[:at], []byte("\n"))
	}
	return manifests.Problem{File: t.file, Line: line, Column: 1, Path: key, Kind: kind, Message: message, Fix: fix}
}

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
		return nil, t.refused("path", manifests.InvalidValue, "the module cannot be read: "+err.Error(), "write the path of a module in the manifest's folder or below it, relative to that folder")
	}
	defer file.Close()
	if info.Size() > runtime.MaxModuleBytes {
		return nil, t.refused("path", manifests.InvalidValue, fmt.Sprintf("the module has %d bytes, the limit is %d", info.Size(), runtime.MaxModuleBytes), "build a smaller module")
	}
	source, err := io.ReadAll(io.LimitReader(file, runtime.MaxModuleBytes))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", manifests.ErrFile, err)
	}
	functions, err := runtime.PluginFunctions(source)
	if err != nil {
		return nil, t.refused("path", manifests.InvalidValue, err.Error(), "name an Extism plug-in")
	}
	return functions, nil
}

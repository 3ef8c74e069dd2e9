// Package extism reads the manifests of Extism, which are JSON, so that unchanged plug-ins are tools:
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
	"maps"
	"path/filepath"
	"slices"
	"strings"

	extism "github.com/extism/go-sdk"

	"github.com/caisson-run/caisson/internal/hostfile"
	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/manifests"
)

// Translated is the translation of a manifest of Extism.
type Translated struct {
	// Manifests are those of the tools, one for each function of the main module, in the module's order.
	// A tool's name is that of the file without its extension, "_", and that of the function. Its one
	// parameter, input, is the plug-in's input.
	Manifests []*manifests.Manifest
	// Members are the translated members, with their equivalents in the tools' manifests, in the usual order of their keys
	// there.
	Members []Member
	// Notes say which members have no equivalent or a lowered value, which functions are not tools, and which permissions
	// the operator must grant.
	Notes []manifests.Problem
}

// Member is a member of a manifest of Extism, with its equivalent in a manifest of Caisson: "limits.timeout: 100ms".
type Member struct {
	manifests.Place
	Text string
}

// IsManifest reports whether a file is a manifest of Extism: JSON with the member "wasm", in whichever case, and
// without "schema", in a file whose name ends in .json. It is false for a file that cannot be read.
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
	// Extism reads it so; Load says how to write it.
	isWasm := func(name string) bool { return strings.EqualFold(name, "wasm") }
	return slices.ContainsFunc(slices.Collect(maps.Keys(members)), isWasm) && members["schema"] == nil
}

// Load reads a manifest of Extism and its modules. The error is a [*manifests.Error] if
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

func readFile(path string, limit int64) (source []byte, err error) {
	file, info, err := hostfile.Open(path, hostfile.Follow)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if info.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes, the limit is %d", path, info.Size(), limit)
	}
	source, err = io.ReadAll(io.LimitReader(file, limit+1))
	if int64(len(source)) > limit {
		return nil, fmt.Errorf("%s grew over the limit of %d bytes while it was read", path, limit)
	}
	return source, err
}

// translation is a manifest that is being translated.
type translation struct {
	file     string
	source   string
	places   map[string]int // offsets of members in the source, such as that of "memory.max_pages"
	said     extism.Manifest
	modules  []*module
	main     *module // one of them
	digest   string  // of all modules, if any has a hash
	notes    []manifests.Problem
	problems []manifests.Problem // with the text
	done     []Member
}

func (t *translation) read() error {
	if err := t.readMembers(); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(t.source), &t.said); err != nil {
		return t.typeError(err)
	}
	if len(t.said.Wasm) == 0 {
		return t.refuse("wasm", mistake.Missing, "the manifest has no module", `write {"wasm": [{"path": "plugin.wasm"}]}`)
	}
	if err := t.arrange(); err != nil {
		return err
	}
	return t.load()
}

package extism

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	extism "github.com/extism/go-sdk"

	"github.com/caisson-run/caisson/internal/hostfile"
	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/runtime/internal/engine"
)

// module is one of a manifest's modules.
type module struct {
	at     string // its member, such as "wasm[0]"
	name   string
	said   extism.WasmFile
	source []byte
}

// path returns the module's path as a manifest of Caisson has it.
func (m *module) path() string { return filepath.ToSlash(filepath.Clean(m.said.Path)) }

// mainName is the name of the module whose functions hosts call.
const mainName = "main"

// arrange finds the main module and its libraries as Extism does. The main one is the first without a
// name, or the one that is named so, or else the last.
func (t *translation) arrange() error {
	known := map[string]*module{}
	for i, said := range t.said.Wasm {
		m := &module{at: fmt.Sprintf("wasm[%d]", i)}
		var ok bool
		if m.said, ok = said.(extism.WasmFile); !ok {
			return t.refuse(m.at, mistake.NotEnforced, "this version of Caisson loads modules from files alone",
				"write the path of a file")
		}
		m.name = m.said.Name
		isLast := i == len(t.said.Wasm)-1
		if t.main == nil && (m.name == "" || isLast) {
			m.name = mainName
		}
		switch other := known[m.name]; {
		case m.name == mainName && other == nil:
			t.main = m
		case m.name == mainName:
			return t.refuse(m.at+".name", mistake.Conflict, other.at+
				" is the main module already, as is the first without a name",
				"name each of the others as its functions are imported")
		case m.name == "":
			return t.refuse(m.at, mistake.Missing, "the module has no name, and "+t.main.at+" is the main module already",
				"name it as its functions are imported")
		case other != nil:
			return t.refuse(m.at+".name", mistake.DuplicateKey, fmt.Sprintf("%s is named %q, too", other.at, m.name),
				"name each module as its functions are imported")
		case !modules.LibraryName.MatchString(m.name):
			return t.refuse(m.at+".name", mistake.InvalidValue, fmt.Sprintf("%q is no name that a library can have", m.name),
				"write at most 64 letters, digits, _, - and ., also where its functions are imported")
		}
		known[m.name] = m
		t.modules = append(t.modules, m)
	}
	return nil
}

func (t *translation) libraries() (all []*module) {
	for _, m := range t.modules {
		if m != t.main {
			all = append(all, m)
		}
	}
	return all
}

// load reads the modules, which must be in the manifest's folder, and checks their hashes. If any has
// one, all are pinned together.
func (t *translation) load() error {
	root, err := os.OpenRoot(filepath.Dir(t.file))
	if err != nil {
		return fmt.Errorf("%w: %w", manifests.ErrFile, err)
	}
	defer root.Close()
	left, isPinned := int64(modules.MaxBytes), false
	all := engine.Source{Libraries: map[string][]byte{}}
	for _, m := range t.modules {
		if m.source, err = t.readModule(root, m, left); err != nil {
			return err
		}
		left -= int64(len(m.source))
		if m == t.main {
			all.Module = m.source
		} else {
			all.Libraries[m.name] = m.source
		}
		if m.said.Hash == "" {
			continue
		}
		isPinned = true
		if err := t.checkHash(m); err != nil {
			return err
		}
	}
	if isPinned {
		t.digest = all.Digest().String()
	}
	return nil
}

func (t *translation) checkHash(m *module) error {
	digest, at := engine.DigestOf(m.source).String(), m.at+".hash"
	switch said, err := hex.DecodeString(m.said.Hash); {
	case err != nil || len(said) != sha256.Size:
		return t.refuse(at, mistake.InvalidValue, fmt.Sprintf("%q is no SHA-256; that of the module %s is %s", m.said.Hash,
			m.said.Path, digest), "a hash is 64 hexadecimal digits: write the module's")
	case !strings.EqualFold(m.said.Hash, digest):
		return t.refuse(at, mistake.InvalidValue, fmt.Sprintf("the module %s has the SHA-256 %s, not this one", m.said.Path,
			digest), "find out who changed the module; if the change is wanted, write its SHA-256")
	}
	return nil
}

// checkPlace refuses paths that, without following links, lead out of the manifest's folder. Links that do are found
// when the file is opened.
func (t *translation) checkPlace(at, path string) error {
	const outside = "move it into the manifest's folder or below it, and write its path relative to that folder"
	local := filepath.FromSlash(path)
	switch relative, inside := t.relative(local); {
	case filepath.IsAbs(local) && inside:
		return t.refuse(at, mistake.InvalidValue, fmt.Sprintf("the module %q has an absolute path", path),
			fmt.Sprintf("write it relative to the manifest's folder: %q", relative))
	case filepath.IsAbs(local):
		return t.refuse(at, mistake.InvalidValue, fmt.Sprintf("the module %q has an absolute path", path), outside)
	case !filepath.IsLocal(local):
		return t.refuse(at, mistake.InvalidValue, fmt.Sprintf("the module %q is outside of the manifest's folder", path),
			outside)
	}
	return nil
}

// relative returns an absolute path as one from the manifest's folder, if it leads into it.
func (t *translation) relative(path string) (string, bool) {
	folder, err := filepath.Abs(filepath.Dir(t.file))
	if err != nil {
		return "", false
	}
	relative, err := filepath.Rel(folder, path)
	return filepath.ToSlash(relative), err == nil && filepath.IsLocal(relative)
}

func (t *translation) readModule(root *os.Root, m *module, limit int64) ([]byte, error) {
	at, path := m.at+".path", m.said.Path
	if err := t.checkPlace(at, path); err != nil {
		return nil, err
	}
	file, info, err := hostfile.OpenIn(root, filepath.FromSlash(path), hostfile.Follow)
	if err != nil {
		if failed, ok := errors.AsType[*fs.PathError](err); ok {
			err = failed.Err
		}
		return nil, t.refuse(at, mistake.InvalidValue, fmt.Sprintf("the module %q cannot be read: %v", path, err),
			"write the path of a module in the manifest's folder or below it, relative to that folder")
	}
	defer file.Close()
	if info.Size() > limit {
		return nil,
			t.refuse(at, mistake.InvalidValue, fmt.Sprintf("the module has %d bytes, the limit of all modules together is %d",
				info.Size(), modules.MaxBytes), "build smaller modules")
	}
	source, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(source)) > limit {
		err = fmt.Errorf("%s grew over the limit while it was read", path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", manifests.ErrFile, err)
	}
	return source, nil
}

// maxTools is the maximum number of tools that are made of a manifest.
const maxTools = 256

func (t *translation) functions() ([]string, error) {
	at := t.main.at + ".path"
	module, err := runtime.Recognise(t.main.source)
	functions := module.Functions
	if err == nil && len(functions) == 0 {
		err = fmt.Errorf("%w: it exports no function without parameters that returns nothing or a whole number",
			runtime.ErrModule)
	}
	if err != nil {
		return nil, t.refuse(at, mistake.InvalidValue, err.Error(), "name an Extism plug-in")
	}
	if len(functions) > maxTools {
		return nil,
			t.refuse(at, mistake.NotEnforced,
				fmt.Sprintf("the module exports %d functions that could be tools, the limit is %d", len(functions), maxTools),
				"write manifests of Caisson for those that models need: caisson inspect "+t.main.said.Path+
					" prints one to start from")
	}
	return functions, nil
}

// variables returns how many bytes the variables of a call may have, or 0 for the default.
func (t *translation) variables() int64 {
	most := t.said.Memory.MaxVarBytes
	if most < 0 || most >= int64(modules.MaxVariables) {
		return 0
	}
	return max(most-1, 1) // Extism's have less than it. As each counts for 40 bytes and more, 1 allows none
}

// recordModules records the equivalents of the members that describe reads.
func (t *translation) recordModules() {
	t.recordTranslation(t.main.at+".path", "module.path: "+t.main.path())
	for _, library := range t.libraries() {
		t.recordTranslation(library.at+".path", keypath.Key("module.libraries", library.name)+": "+library.path())
	}
	if t.digest != "" {
		pinned := slices.IndexFunc(t.modules, func(m *module) bool { return m.said.Hash != "" })
		t.recordTranslation(t.modules[pinned].at+".hash", "module.sha256: "+t.digest)
	}
	if len(t.said.Config) > 0 {
		t.recordTranslation("config", "module.config: "+strings.Join(slices.Sorted(maps.Keys(t.said.Config)), ", "))
	}
	if most := t.variables(); most > 0 {
		t.recordTranslation("memory.max_var_bytes", fmt.Sprintf("module.variables: %dB", most))
	}
}

// describe returns the key module of the manifest of a function's tool.
func (t *translation) describe(function string) map[string]any {
	m := map[string]any{"path": t.main.path(), "abi": modules.ABIExtism, "entry": function, "stdin": "{input}",
		"stdout": modules.StdoutText}
	if t.digest != "" {
		m["sha256"] = t.digest
	}
	if libraries := t.libraries(); len(libraries) > 0 {
		paths := map[string]string{}
		for _, library := range libraries {
			paths[library.name] = library.path()
		}
		m["libraries"] = paths
	}
	if len(t.said.Config) > 0 {
		m["config"] = t.said.Config
	}
	if most := t.variables(); most > 0 {
		m["variables"] = most
	}
	return m
}

package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The files of an entry.
const (
	indexFile  = "index"
	moduleFile = "module.wasm"
	dataFile   = "data"
	codeFile   = "code"
)

// errNoEntry means that there is no entry, or a damaged one.
var errNoEntry = errors.New("no intact entry")

// index is the index of an entry. Its file is the SHA-256 of the rest, a line feed, and
// the rest: this in JSON.
type index struct {
	Folder string `json:"folder"` // how wazero names the code's folder in a cache
	Name   string `json:"name"`   // and the code
	Code   blob   `json:"code"`
	Module blob   `json:"module"` // the rewritten module
	Data   blob   `json:"data"`   // its data segments, packed

	Meter string `json:"meter"` // the rest is what [rewritten] says of it
	Depth string `json:"depth"`
	Shift int    `json:"shift"`
	Start bool   `json:"start"`

	Globals      []string `json:"globals"`
	Unrestorable string   `json:"unrestorable"`
	Forks        bool     `json:"forks"`
	DataKept     bool     `json:"data_kept"`
}

// writeEntry makes an entry of a rewritten module and of the code that the compiler left
// in the cache directory compiled.
func writeEntry(entry string, r rewritten, compiled string) error {
	code, err := onlyFile(compiled)
	if err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(compiled, code), filepath.Join(entry, codeFile)); err != nil {
		return err
	}
	if err := os.RemoveAll(compiled); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(entry, moduleFile), r.source, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(entry, dataFile), r.data, 0o600); err != nil {
		return err
	}
	native, err := measureBlob(filepath.Join(entry, codeFile))
	if err != nil {
		return err
	}
	text, err := json.Marshal(index{
		Folder: filepath.Dir(code), Name: filepath.Base(code), Code: native, Module: blobOf(r.source), Data: blobOf(r.data),
		Meter: r.meter, Depth: r.depth, Shift: r.shift, Start: r.start, Globals: r.globals, Unrestorable: r.unrestorable, Forks: r.forks, DataKept: r.dataKept,
	})
	if err != nil {
		return err
	}
	text = append([]byte(DigestOf(text).String()+"\n"), text...)
	return os.WriteFile(filepath.Join(entry, indexFile), text, 0o600)
}

// readEntry returns the index and the rewritten module of an entry, with its data. The code is checked
// where it is read, which is not here.
func readEntry(entry string) (index, rewritten, error) {
	text, err := readIndex(filepath.Join(entry, indexFile))
	if err != nil {
		return index{}, rewritten{}, err
	}
	sum, text, _ := bytes.Cut(text, []byte("\n"))
	if string(sum) != DigestOf(text).String() {
		return index{}, rewritten{}, fmt.Errorf("%w: the index has changed", errNoEntry)
	}
	var i index
	if err := json.Unmarshal(text, &i); err != nil {
		return index{}, rewritten{}, fmt.Errorf("%w: %w", errNoEntry, err)
	}
	source, err := i.Module.read(filepath.Join(entry, moduleFile))
	if err != nil {
		return index{}, rewritten{}, err
	}
	data, err := i.Data.read(filepath.Join(entry, dataFile))
	if err != nil {
		return index{}, rewritten{}, err
	}
	if len(data) == 0 {
		data = nil
	}
	return i, rewritten{source: source, meter: i.Meter, depth: i.Depth, shift: i.Shift, start: i.Start,
		globals: i.Globals, unrestorable: i.Unrestorable, forks: i.Forks,
		data: data, dataKept: i.DataKept}, nil
}

// checkEntry returns nil for an intact entry, and errNoEntry for another.
func checkEntry(entry string) error {
	i, _, err := readEntry(entry)
	if err != nil {
		return err
	}
	return i.Code.check(filepath.Join(entry, codeFile))
}

// onlyFile returns the path of the one regular file below a directory, relative to it.
func onlyFile(directory string) (string, error) {
	var found []string
	err := filepath.WalkDir(directory, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is no regular file", path)
		}
		relative, err := filepath.Rel(directory, path)
		found = append(found, relative)
		return err
	})
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("the compiler left %d files; want 1", len(found))
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}

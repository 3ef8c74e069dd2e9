package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/caisson-run/caisson/wasm-tools/files/internal/charset"
	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

// maxEntries bounds a listing, because a model cannot read more anyway.
const maxEntries = 2000

// data is the data of a result.
type data = map[string]any

func read(a arguments) (call.Result, error) {
	file, err := os.Open(resolve(a.Path))
	if err != nil {
		return call.Result{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return call.Result{}, err
	}
	if info.IsDir() {
		return call.Result{}, errors.New("it is a directory; list it instead")
	}
	start, err := charset.Start(file)
	if err != nil {
		return call.Result{}, err
	}
	stored, err := charset.Of(a.Encoding, start)
	if err != nil {
		return call.Result{}, err
	}
	offset := a.Offset
	if offset == 0 && stored.Mark != "" && strings.HasPrefix(start, stored.Mark) {
		offset = int64(len(stored.Mark))
	}
	bytes, err := io.ReadAll(io.NewSectionReader(file, offset, cmp.Or(a.MaxBytes, 100_000)))
	if err != nil {
		return call.Result{}, err
	}
	truncated := offset+int64(len(bytes)) < info.Size()
	text, used, err := stored.Decode(bytes, !truncated)
	if err != nil {
		return call.Result{}, fmt.Errorf("it is not a text file in %s (%d bytes); if it is text, name its encoding",
			stored.Name, info.Size())
	}
	if truncated && used == 0 {
		return call.Result{}, errors.New("max_bytes is less than one character")
	}
	output := text
	if truncated {
		output += fmt.Sprintf("\n[cut: go on at offset %d of %d]", offset+int64(used), info.Size())
	}
	return call.Result{Output: output,
		Data: data{"path": a.Path, "content": text, "bytes": info.Size(), "truncated": truncated}}, nil
}

func write(a arguments) (call.Result, error) {
	name := resolve(a.Path)
	start := ""
	if a.Mode == appending {
		var err error
		if start, err = startOfExisting(name); err != nil {
			return call.Result{}, err
		}
	}
	stored, err := charset.Of(a.Encoding, start)
	if err != nil {
		return call.Result{}, err
	}
	encoded, err := stored.Encode(a.Content)
	if err != nil {
		return call.Result{}, err
	}
	if start == "" {
		encoded = stored.Mark + encoded
	}
	verb := "wrote"
	if a.Mode == appending {
		verb = "appended"
		err = appendTo(name, encoded)
	} else {
		err = replace(name, encoded)
	}
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{
		Output: fmt.Sprintf("%s %d bytes to %s", verb, len(encoded), a.Path),
		Data:   data{"path": a.Path, "bytes": len(encoded)},
	}, nil
}

// startOfExisting is [charset.Start] for a file that need not exist.
func startOfExisting(name string) (string, error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		return "", syscall.EISDIR
	}
	return charset.Start(file)
}

// appending is the mode that adds to a file. The other one, write, replaces it.
const appending = "append"

func remove(a arguments) (call.Result, error) {
	name := resolve(a.Path)
	if name == project {
		return call.Result{}, errors.New("the project itself cannot be deleted")
	}
	if _, err := os.Lstat(name); err != nil {
		return call.Result{}, err
	}
	do := os.Remove
	if a.Recursive {
		do = os.RemoveAll
	}
	if err := do(name); err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: "deleted " + a.Path, Data: data{"path": a.Path}}, nil
}

type entry struct {
	Path  string `json:"path"`
	Type  string `json:"type"`
	Bytes int64  `json:"bytes"`
}

type listing struct {
	Path      string  `json:"path"`
	Entries   []entry `json:"entries"`
	Truncated bool    `json:"truncated"`
}

func list(a arguments) (call.Result, error) {
	found := listing{Path: a.Path, Entries: []entry{}}
	top := resolve(a.Path)
	wanted, err := patternOf(a.Pattern)
	if err != nil {
		return call.Result{}, err
	}
	err = fs.WalkDir(os.DirFS(top), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			if name == "." {
				return err
			}
			return fs.SkipDir // a directory that cannot be read is listed without its content
		}
		if name == "." {
			if !d.IsDir() {
				return errors.New("it is a file, not a directory")
			}
			return nil
		}
		if wanted.matches(name) {
			if len(found.Entries) == maxEntries {
				found.Truncated = true
				return fs.SkipAll
			}
			found.Entries = append(found.Entries, describe(name, d))
		}
		if d.IsDir() && !a.Recursive && !wanted.isDeep() {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return call.Result{}, err
	}
	output := found.text()
	if len(found.Entries) == 0 && a.Pattern != "" && a.Pattern != "*" {
		output = "(nothing matches " + plain.Line(a.Pattern, maxPattern) + ")"
	}
	return call.Result{Output: output, Data: found}, nil
}

func describe(name string, d fs.DirEntry) entry {
	e := entry{Path: name, Type: kind(d.Type())}
	if info, err := d.Info(); err == nil && e.Type == "file" {
		e.Bytes = info.Size()
	}
	return e
}

func (l listing) text() string {
	var b strings.Builder
	for _, e := range l.Entries {
		switch e.Type {
		case "directory":
			fmt.Fprintf(&b, "%s/\n", e.Path)
		case "file":
			fmt.Fprintf(&b, "%s (%d bytes)\n", e.Path, e.Bytes)
		default:
			fmt.Fprintf(&b, "%s (%s)\n", e.Path, e.Type)
		}
	}
	switch {
	case len(l.Entries) == 0:
		b.WriteString("(empty)\n")
	case l.Truncated:
		fmt.Fprintf(&b, "[cut after %d entries]\n", len(l.Entries))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "directory"
	case mode.IsRegular():
		return "file"
	case mode&fs.ModeSymlink != 0:
		return "link"
	}
	return "other"
}

func exists(a arguments) (call.Result, error) {
	info, err := os.Stat(resolve(a.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return call.Result{Output: a.Path + " does not exist", Data: data{"path": a.Path, "exists": false}}, nil
	}
	if err != nil {
		return call.Result{}, err
	}
	found := kind(info.Mode())
	return call.Result{Output: fmt.Sprintf("%s exists (%s)", a.Path, found),
		Data: data{"path": a.Path, "exists": true, "type": found}}, nil
}

func mkdir(a arguments) (call.Result, error) {
	name := resolve(a.Path)
	if info, err := os.Stat(name); err == nil {
		if !info.IsDir() {
			return call.Result{}, errors.New("a file of that name exists")
		}
		return call.Result{Output: a.Path + " exists already", Data: data{"path": a.Path, "created": false}}, nil
	}
	if _, err := makeDirectories(name); err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: "created " + a.Path, Data: data{"path": a.Path, "created": true}}, nil
}

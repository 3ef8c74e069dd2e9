// Command skills implements read_skill: it reads the files of skills, which are folders with a SKILL.md.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
	"github.com/caisson-run/caisson/wasm-tools/skills/internal/skill"
)

// folder is where the manifests mount the skills.
const folder = "/skills"

// maxPiece is the maximum number of bytes of a file that a call returns.
const maxPiece = 100_000

// arguments are the tool's arguments.
type arguments struct {
	SkillName string `json:"skill_name"`
	// FilePath is relative to the skill's folder.
	FilePath string `json:"file_path"`
	// Offset is the byte to start at. It is a whole number, but may be written as 5.0.
	Offset float64 `json:"offset"`
}

// data is the value for programs.
type data struct {
	Skill       string `json:"skill"` // the name of its folder
	Name        string `json:"name"`
	Description string `json:"description"`
	// Problem describes the fault of the skill's front matter, or is empty.
	Problem    string   `json:"problem,omitempty"`
	FilePath   string   `json:"file_path"`
	Content    string   `json:"content"`
	Bytes      int64    `json:"bytes"`
	NextOffset int64    `json:"next_offset,omitempty"`
	Files      []string `json:"files"`
	// MoreFiles is set if the skill has more files than are listed.
	MoreFiles bool `json:"more_files,omitempty"`
}

func main() {
	call.Main(func(a arguments) (call.Result, error) { return read(os.DirFS(folder), a) })
}

func read(skills fs.FS, a arguments) (call.Result, error) {
	found, err := skill.Find(skills, a.SkillName)
	if err != nil {
		return call.Result{}, err
	}
	d := data{Skill: found.Folder, Name: found.Name, Description: found.Description, Problem: found.Problem,
		FilePath: cmp.Or(a.FilePath, skill.File)}
	if d.Files, d.MoreFiles, err = found.Files(skills); err != nil {
		return call.Result{}, err
	}
	name := path.Clean(d.FilePath)
	if !fs.ValidPath(name) {
		return call.Result{}, fmt.Errorf("file_path %q is not within the skill; write a path from its folder, such as %s",
			plain.Line(d.FilePath, 200), skill.File)
	}
	if err := d.load(skills, path.Join(found.Folder, name), int64(a.Offset)); err != nil {
		return call.Result{}, fmt.Errorf("%s: %w%s", plain.Line(d.FilePath, 200), err, listed(d))
	}
	return call.Result{Success: true, Output: d.text(), Data: d}, nil
}

// load reads a piece of a file, in whole characters.
func (d *data) load(skills fs.FS, name string, offset int64) error {
	file, err := skills.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("the skill has no such file")
	case err != nil:
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("it is a folder")
	}
	if _, err := io.CopyN(io.Discard, file, min(offset, info.Size())); err != nil {
		return err
	}
	piece, err := io.ReadAll(io.LimitReader(file, maxPiece))
	if err != nil {
		return err
	}
	d.Bytes = info.Size()
	if end := offset + int64(len(piece)); end < d.Bytes {
		piece = plain.WholeRunes(piece)
		d.NextOffset = offset + int64(len(piece))
	}
	if !utf8.Valid(piece) {
		return fmt.Errorf("it is not a text in UTF-8 (%d bytes)", d.Bytes)
	}
	d.Content = string(piece)
	return nil
}

// text returns the text for a model: the content, the offset at which it continues, and with SKILL.md, the skill's
// other files.
func (d *data) text() string {
	text := d.Content
	if d.NextOffset > 0 {
		text += fmt.Sprintf("\n[cut: go on at offset %d of %d]", d.NextOffset, d.Bytes)
	}
	if d.FilePath != skill.File {
		return text
	}
	var notes []string
	if d.Problem != "" {
		notes = append(notes, "["+d.Problem+"]")
	}
	if others := listed(*d); others != "" {
		notes = append(notes, "["+strings.TrimPrefix(others, "; ")+"]")
	}
	if len(notes) == 0 {
		return text
	}
	return strings.TrimSuffix(text, "\n") + "\n\n" + strings.Join(notes, "\n")
}

// listed names the files of a skill but SKILL.md.
func listed(d data) string {
	var others []string
	for _, name := range d.Files {
		if name != skill.File {
			others = append(others, plain.Line(name, 200))
		}
	}
	if len(others) == 0 {
		return ""
	}
	if d.MoreFiles {
		others = append(others, "…")
	}
	return "; files of the skill: " + strings.Join(others, ", ")
}

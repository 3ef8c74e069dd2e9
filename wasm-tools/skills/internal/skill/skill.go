// Package skill finds skills: folders with a SKILL.md, which starts with front matter in YAML that has a name and a
// description.
package skill

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

// File is the file that makes a folder a skill.
const File = "SKILL.md"

// Limits of reading and of shown text.
const (
	maxSkills      = 500 // folders
	maxFiles       = 500 // of one skill
	maxFrontMatter = 32 << 10
	maxShown       = 50 // skills in an error
	maxName        = 100
	maxDescription = 1024
	maxSummary     = 200 // of a description, in a list
)

// Skill describes a skill.
type Skill struct {
	Folder string // the name of its folder
	// Name and Description are those of the front matter; the name is the folder's if it has none.
	Name, Description string
	// Problem describes the fault of the front matter in words, or is empty.
	Problem string
}

// Find returns the skill in the folder of a name or, if there is none, the skill whose front matter has the name. The
// error lists the existing skills.
func Find(skills fs.FS, name string) (Skill, error) {
	// If a folder has the name, do not read the other skills, of which some may be broken.
	if fs.ValidPath(name) && !strings.HasPrefix(name, ".") && !strings.Contains(name, "/") {
		if s, err := load(skills, name); err == nil {
			return s, nil
		}
	}
	all, more, err := list(skills)
	if err != nil {
		return Skill{}, err
	}
	var named []Skill
	for _, s := range all {
		if s.Name == name {
			named = append(named, s)
		}
	}
	switch {
	case len(named) == 1:
		return named[0], nil
	case len(named) > 1:
		var folders []string
		for _, s := range named {
			folders = append(folders, s.Folder)
		}
		return Skill{}, fmt.Errorf("several skills have the name %q; name one of the folders %s", plain.Line(name, maxName),
			strings.Join(folders, ", "))
	case len(all) == 0:
		return Skill{}, errors.New("there are no skills: no folder has a " + File)
	}
	return Skill{}, fmt.Errorf("there is no skill %q; there are:%s", plain.Line(name, maxName), summaries(all, more))
}

// summaries lists skills, a line for each.
func summaries(all []Skill, more bool) string {
	var b strings.Builder
	for i, s := range all {
		if i == maxShown {
			more = true
			break
		}
		b.WriteString("\n- " + plain.Line(s.Folder, maxName))
		if s.Description != "" {
			b.WriteString(": " + plain.Line(s.Description, maxSummary))
		}
	}
	if more {
		b.WriteString("\n- and more")
	}
	return b.String()
}

// list returns the skills, sorted by folder, and whether there may be more.
func list(skills fs.FS) (all []Skill, more bool, err error) {
	entries, err := fs.ReadDir(skills, ".")
	if err != nil {
		return nil, false, fmt.Errorf("the folder of skills cannot be read: %w", err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if len(all) == maxSkills {
			return all, true, nil
		}
		if s, err := load(skills, entry.Name()); err == nil {
			all = append(all, s)
		}
	}
	return all, false, nil
}

// load reads a skill's front matter.
func load(skills fs.FS, folder string) (Skill, error) {
	file, err := skills.Open(path.Join(folder, File))
	if err != nil {
		return Skill{}, err
	}
	defer file.Close()
	start, err := io.ReadAll(io.LimitReader(file, maxFrontMatter))
	if err != nil {
		return Skill{}, err
	}
	s := Skill{Folder: folder, Name: folder}
	front, err := decode(string(start))
	if err != nil {
		s.Problem = File + " " + err.Error()
		return s, nil
	}
	if front.Name != "" {
		s.Name = plain.Line(front.Name, maxName)
	}
	s.Description = plain.Line(front.Description, maxDescription)
	return s, nil
}

// frontMatter has the members of the front matter that are used.
type frontMatter struct{ Name, Description string }

// decode reads front matter: YAML between two lines of three hyphens, at the start.
func decode(text string) (front frontMatter, err error) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	rest, found := strings.CutPrefix(text, "---\n")
	if !found {
		return front, errors.New("has no front matter: it should start with a line of three hyphens")
	}
	matter, _, found := strings.Cut("\n"+rest, "\n---\n")
	if !found {
		if matter, found = strings.CutSuffix("\n"+rest, "\n---"); !found {
			return front, errors.New("has no line of three hyphens that ends its front matter")
		}
	}
	var parsed yaml.Node
	err = yaml.Unmarshal([]byte(matter), &parsed)
	switch {
	case err == nil && len(parsed.Content) == 0: // it is empty
		return front, nil
	case err == nil && parsed.Content[0].Kind != yaml.MappingNode:
		return front, errors.New("has front matter without keys: write name: and description: there")
	case err == nil:
		err = parsed.Decode(&front)
	}
	if err != nil {
		return frontMatter{}, fmt.Errorf("has front matter that cannot be read: %s", plain.Line(err.Error(), maxSummary))
	}
	return front, nil
}

// Files returns the files of a skill, by their paths from its folder, and whether there are more. It leaves out hidden
// ones and compiled Python.
func (s Skill) Files(skills fs.FS) (files []string, more bool, err error) {
	files = []string{}
	err = fs.WalkDir(skills, s.Folder, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && name == s.Folder:
			return err
		case err != nil:
			return fs.SkipDir // a folder that cannot be read is left out
		case name != s.Folder && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "__pycache__"):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		case len(files) == maxFiles:
			more = true
			return fs.SkipAll
		}
		files = append(files, strings.TrimPrefix(name, s.Folder+"/"))
		return nil
	})
	return files, more, err
}

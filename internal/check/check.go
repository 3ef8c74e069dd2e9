// Package check finds mistakes in manifests, their modules and policies before anything runs: problems that keep a tool
// from working, and warnings about entries that are probably not intended. The command "caisson validate" prints its
// report.
package check

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/caisson-run/caisson/internal/names"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime/extism"
)

// Options configures [Run].
type Options struct {
	Strict      bool   // warnings make a manifest or policy invalid
	SkipModules bool   // modules are not read
	SkipFlag    string // how a person sets SkipModules, for the advice about a module that is missing; may be empty
	// Folders are those in which the host keeps what no tool may write to. If one may, calls are not run.
	Folders []Folder
}

// Folder is a folder of the host.
type Folder struct {
	Dir  string
	Use  string // such as "records of calls are kept in DIR"
	Flag string // chooses another folder
}

// Report has the findings of [Run]. Manifests with warnings are valid, unless the options are strict.
type Report struct {
	Valid    bool                `json:"valid"`
	Files    int                 `json:"files"`    // manifests
	Policies int                 `json:"policies"` // policy files
	Problems []manifests.Problem `json:"problems"`
	Warnings []manifests.Problem `json:"warnings"`
	// Translated has the manifests of Extism, translated to Caisson's.
	Translated []Translation `json:"translated"`
}

// Translation is a manifest of Extism, translated to Caisson's.
type Translation struct {
	File    string             `json:"file"`
	Tools   []string           `json:"tools"`
	Members []translatedMember `json:"members"`
}

type translatedMember struct {
	Member string `json:"member"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Is     string `json:"is"` // such as "limits.timeout: 100ms"
}

type checker struct{ Options }

// Run checks the manifests and policies at all paths, which are files and folders. It fails only if ctx is done.
func Run(ctx context.Context, paths []string, options Options) (Report, error) {
	c := &checker{options}
	files, policies, problems, err := discoverAll(ctx, paths)
	if err != nil {
		return Report{}, err
	}
	var warnings []manifests.Problem
	var broken []string // names in broken manifests
	translations := []Translation{}
	known, loaded := names.New(), map[string]*manifests.Manifest{}
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return Report{}, err
		}
		read, translated, err := manifestsIn(file)
		if err != nil {
			problems = append(problems, loadProblems(file, err)...)
			if invalid, ok := errors.AsType[*manifests.Error](err); ok {
				broken = append(broken, invalid.Names...)
			}
			continue
		}
		if translated != nil {
			warnings = append(warnings, translated.Notes...)
			translations = append(translations, translationOf(file, translated))
		}
		wrong, doubtful := c.manifests(ctx, read)
		problems, warnings = append(problems, wrong...), append(warnings, doubtful...)
		for _, m := range read {
			if err := known.Add(m); err != nil {
				return Report{}, err
			}
			loaded[m.File+"\x00"+m.Name] = m
		}
	}
	tools := slices.Collect(maps.Values(loaded))
	warnings = append(warnings, successors(tools, known, broken)...)
	for _, file := range policies {
		wrong, doubtful := c.policy(ctx, file, tools)
		problems, warnings = append(problems, wrong...), append(warnings, doubtful...)
	}
	for _, d := range known.Duplicates() {
		key, fix := "name", "give one of the tools another name"
		if d.Dropped.Alias {
			key, fix = "aliases", "remove the alias"
		}
		problems = append(problems, droppedOf(loaded, d).Problem(key, duplicateName, d.Error(), fix))
	}
	return Report{
		Valid: len(problems) == 0 && (!c.Strict || len(warnings) == 0), Files: len(files), Policies: len(policies),
		Problems: sorted(problems), Warnings: sorted(warnings), Translated: translations,
	}, nil
}

func translationOf(file string, translated *extism.Translated) Translation {
	t := Translation{File: file, Tools: []string{}, Members: []translatedMember{}}
	for _, m := range translated.Manifests {
		t.Tools = append(t.Tools, m.Name)
	}
	for _, m := range translated.Members {
		t.Members = append(t.Members, translatedMember{m.Key, m.Line, m.Column, m.Text})
	}
	return t
}

// droppedOf returns the manifest of a tool whose name is another's.
func droppedOf(loaded map[string]*manifests.Manifest, d *registry.DuplicateError) *manifests.Manifest {
	var inFile *manifests.Manifest
	for _, m := range loaded {
		if m.File != d.Dropped.File {
			continue
		}
		if inFile = m; slices.Contains(slices.Concat([]string{m.Name}, m.Aliases), d.Name) {
			break
		}
	}
	return inFile
}

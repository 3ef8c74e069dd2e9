package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/internal/check"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/internal/view"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// sources returns the folders and manifests to load: those of the flags, then those of the policy.
func (op *operator) sources() ([]string, error) {
	o := op.options
	if o.only != "" {
		return []string{o.only}, nil
	}
	if len(o.tools)+len(op.policy.Tools) == 0 {
		if info, err := os.Stat(defaultTools); err != nil || !info.IsDir() {
			fix := "name a folder with --tools DIR"
			if example := manifestsHere(); example != "" {
				fix += ", such as --tools " + terminal.Quote(example)
			}
			return nil, failed(exitUsage, "no tools are given, and there is no folder ./"+defaultTools,
				append(op.unusedFile(), fix)...)
		}
		return []string{defaultTools}, nil
	}
	var missing []message
	find := func(where string, sources []string) {
		for _, source := range sources {
			if check.IsMissing(source) {
				missing = append(missing, message{fmt.Sprintf("%s: there is no file or folder %q", where, source),
					[]string{"name a folder that holds tools, or a manifest"}})
			}
		}
	}
	find("--tools", o.tools)
	find(op.policy.File+": tools", op.policy.Tools)
	if len(missing) > 0 {
		return nil, &failure{exitUsage, missing}
	}
	return check.Distinct(slices.Concat(o.tools, op.policy.Tools)), nil
}

// manifestsHere returns the first folder in the working directory that has a manifest itself, or "".
func manifestsHere() string {
	isManifest := func(file fs.DirEntry) bool { return manifests.IsManifestName(file.Name()) }
	entries, _ := os.ReadDir(".") // a folder that cannot be read is no example
	for _, entry := range entries[:min(len(entries), check.LookedFiles)] {
		if !entry.IsDir() {
			continue
		}
		files, _ := os.ReadDir(entry.Name())
		if slices.ContainsFunc(files[:min(len(files), check.LookedFiles)], isManifest) {
			return entry.Name()
		}
	}
	return ""
}

func (o *options) configFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&o.config, "config", "",
		"load tools, grants and profiles from the policy `FILE`, such as "+check.PolicyName+
			"; no policy is loaded by default")
	flags.StringVar(&o.profile, "profile", "",
		"apply the limits of `PROFILE` to all tools: strict, standard, lenient, or a profile that the policy defines "+
			"(default: the policy's, or standard)")
}

func (o *options) policyFlags(command *cobra.Command) {
	o.configFlags(command)
	flags := command.Flags()
	flags.Func("allow-net",
		"grant network access to `[SCHEME://]HOST[:PORT]` to tools that request it; https and http unless a scheme is "+
			"given; repeatable",
		addedTo(&o.networks, parseNetwork))
	flags.Func("allow-call",
		"let other tools call the tool `NAME`, if their manifests request it; NAME runs with its own permissions; repeatable",
		addedTo(&o.calls, parseCall))
	flags.Func("ask",
		"require approval for every call of the tools that match `GLOB`, such as file_*; takes precedence over "+
			"--approve-tool and the policy's \"approve\"; repeatable",
		addedTo(&o.asks, parseAsk))
	flags.Func("approve-tool",
		"run the destructive tool `NAME` without asking for approval; repeatable",
		addedTo(&o.approved, parseApproval))
	flags.Func("secret",
		"bind a secret to one host, for tools that request it: `NAME=env:VAR@HOST` or NAME=file:PATH@HOST; repeatable",
		o.addSecret)
}

// operator holds the decisions of the command's user about tools.
type operator struct {
	options *options
	policy  *manifests.Policy // the zero value without --config
	flags   *manifests.Policy // the grants to all tools, and the approvals, from flags
	profile manifests.Profile
	context map[string]string // context values that the host fills in
}

// operator reads the policy and combines it with the flags.
func (o *options) operator() (*operator, error) {
	op := &operator{options: o, policy: &manifests.Policy{}, flags: o.policy()}
	var err error
	if o.config != "" {
		op.policy, err = manifests.LoadPolicy(o.config)
	}
	switch {
	case errors.Is(err, manifests.ErrInvalid):
		return nil, &failure{exitUsage, messagesOf(err)}
	case err != nil:
		return nil, failed(exitUsage, fmt.Sprintf("--config %q: %s", o.config, check.Reason(err)),
			"name a policy, which is a regular file that can be read")
	}
	if op.profile, err = op.policy.ProfileNamed(o.profile); err != nil {
		return nil, failed(exitUsage, "--profile: "+err.Error())
	}
	op.context, err = op.contextValues()
	return op, err
}

// asks reports whether the policy or a flag requires approval for calls of a tool.
func (op *operator) asks(m *manifests.Manifest) bool {
	return len(op.policy.For(m.Name, m.File).Ask)+len(op.flags.For(m.Name, m.File).Ask) > 0
}

// checkRecording rejects the recording of inputs if no records are kept.
func (op *operator) checkRecording() error {
	asked := "--record-inputs"
	if !op.options.recordInputs {
		if len(op.policy.RecordInputs) == 0 {
			return nil
		}
		asked = op.policy.File + ": record_inputs"
	}
	if dir, err := op.options.stateFolder(); err == nil && dir == "" && op.options.ledgerURL == "" {
		return failed(exitUsage, asked+`: no records are kept with --state-dir ""`, "name a folder with --state-dir DIR")
	}
	return nil
}

// contextValues returns the values of context parameters. Flags set none that the policy assigns to another source.
func (op *operator) contextValues() (map[string]string, error) {
	values := map[string]string{}
	for _, source := range op.policy.Context {
		if source.From == manifests.FromFixed {
			values[source.Name] = source.Value
		}
	}
	var wrong []message
	for _, flag := range op.options.context {
		source, named := op.contextSource(flag.key)
		switch {
		case named && source.From == manifests.FromFixed:
			wrong = append(wrong,
				message{fmt.Sprintf("--context %s: %s fixes its value", flag.key, source.Origin), []string{"remove the flag"}})
		case named && source.From != manifests.FromFlag:
			wrong = append(wrong,
				message{fmt.Sprintf("--context %s: %s says that %s comes from the %s; the command line has none", flag.key,
					source.Origin, source.Name, source.From),
					[]string{"write \"from: flag\" there to set it with --context"}})
		default:
			values[flag.key] = flag.value
		}
	}
	if len(wrong) > 0 {
		return nil, &failure{exitUsage, wrong}
	}
	return values, nil
}

// contextSource returns the policy's source of a value, whatever the case of its name, which many JSON decoders ignore.
func (op *operator) contextSource(name string) (manifests.ContextSource, bool) {
	for _, source := range op.policy.Context {
		if strings.EqualFold(source.Name, name) {
			return source, true
		}
	}
	return manifests.ContextSource{}, false
}

// contextNote returns the remedy for a denied request of a tool whose manifest is in a file, and a note on the source
// of the context value. The remedy has no flag for a value that the policy does not let flags set, and no policy key
// that the policy already has.
func (op *operator) contextNote(denial tool.Denial, file string) (view.Remedy, []string) {
	r := view.RemedyOf(denial.Allow, file)
	source, named := op.contextSource(denial.Value)
	if denial.Permission != "context" || !named {
		return r, nil
	}
	if !r.IsGrant() {
		r.Policy = "" // the policy already has a key for the value
	}
	if source.From == manifests.FromFlag {
		return r, []string{fmt.Sprintf("or write {from: fixed, value: VALUE} for it at %s", source.Origin)}
	}
	if r.Flags = ""; source.From == manifests.FromFixed {
		return r, nil
	}
	return r,
		[]string{fmt.Sprintf(
			"%s says that %s comes from the %s, and the command line has none; write \"from: flag\" there to set it with "+
				"--context",
			source.Origin, source.Name, source.From)}
}

// file returns the file name of the operator's policy, or of the one to create.
func (op *operator) file() string { return cmp.Or(op.options.config, check.PolicyName) }

// unusedFile returns a hint about a policy here that was not named. It is never used automatically,
// because a folder with third-party tools could contain its own policy.
func (op *operator) unusedFile() []string {
	if op.options.config != "" {
		return nil
	}
	if info, err := os.Stat(check.PolicyName); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return []string{fmt.Sprintf("there is a %s here; --config %s uses it", check.PolicyName, check.PolicyName)}
}

// defaultTools is the source if neither a flag nor the policy names one.
const defaultTools = "wasm-tools"

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// policyName is what a policy file is called where nobody named another one.
const policyName = "caisson.yaml"

func (o *options) policyFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&o.config, "config", "",
		"read tools, grants and profiles from a policy `FILE` such as "+policyName+"; none is read unless it is named here")
	flags.StringVar(&o.profile, "profile", "",
		"bound all tools by a `PROFILE`: strict, standard, lenient, or one that --config defines (default: the policy's, or standard)")
	flags.Var(&o.networks, "allow-net",
		"grant requests to a host to the tools that ask for it: `[SCHEME://]HOST[:PORT]`, by https and http unless a scheme is named; repeatable")
	flags.Var(&o.calls, "allow-call",
		"let the tools that ask for it call the tool with this `NAME`, whose own permissions hold for what it then does; repeatable")
	flags.Var(&o.asks, "ask",
		"have calls of the tools that a `GLOB` such as file_* names wait for approval, whatever approves of them otherwise; repeatable")
	flags.Var(&o.approved, "approve-tool",
		"run calls of the tool with this `NAME` without approval, although it is destructive; repeatable")
	flags.Var(&o.secrets, "secret",
		"bind a secret to the one host that gets it, for the tools that ask for it: `NAME=env:VAR@HOST`, or NAME=file:PATH@HOST; repeatable")
}

// operator is what whoever runs the command has decided about tools.
type operator struct {
	options *options
	policy  *manifests.Policy // the zero value without --config
	flags   *manifests.Policy // what flags grant to all tools, and say of approvals
	profile manifests.Profile
	context map[string]string // the values that the host fills in
}

// operator reads the policy and settles what the flags leave to it.
func (o *options) operator() (*operator, error) {
	op := &operator{options: o, policy: &manifests.Policy{}, flags: o.policy()}
	if err := o.secrets.check(); err != nil {
		return nil, err
	}
	var err error
	if o.config != "" {
		if op.policy, err = manifests.LoadPolicy(o.config); err != nil {
			return nil, configFailure(o.config, err)
		}
	}
	if op.profile, err = op.policy.ProfileNamed(o.profile); err != nil {
		return nil, failed(exitUsage, "--profile: "+err.Error())
	}
	op.context, err = op.contextValues()
	return op, err
}

// configFailure words why a policy cannot be read.
func configFailure(file string, err error) *failure {
	messages := messagesOf(err)
	var invalid *manifests.Error
	if !errors.As(err, &invalid) {
		messages = []message{{fmt.Sprintf("--config %q: %s", file, reasonOf(err)), []string{"name a policy, which is a regular file that can be read"}}}
	}
	return &failure{exitUsage, messages}
}

// asks reports whether the policy or a flag has calls of a tool wait for approval.
func (op *operator) asks(m *manifests.Manifest) bool {
	return len(op.policy.For(m.Name, m.File).Ask)+len(op.flags.For(m.Name, m.File).Ask) > 0
}

// contextValues returns the values of context parameters. A flag sets only what the policy
// does not leave to somebody else.
func (op *operator) contextValues() (map[string]string, error) {
	values := map[string]string{}
	for _, source := range op.policy.Context {
		if source.From == manifests.Fixed {
			values[source.Name] = source.Value
		}
	}
	var wrong []message
	for _, flag := range op.options.context {
		source, named := op.contextSource(flag.key)
		switch {
		case named && source.From == manifests.Fixed:
			wrong = append(wrong, message{fmt.Sprintf("--context %s: %s fixes its value", flag.key, source.Origin), []string{"leave the flag out"}})
		case named && source.From != manifests.FromFlag:
			wrong = append(wrong, message{fmt.Sprintf("--context %s: %s says that %s comes from the %s; the command line has none", flag.key, source.Origin, source.Name, source.From),
				[]string{"say \"from: flag\" there to set it with --context"}})
		default:
			values[flag.key] = flag.value
		}
	}
	if len(wrong) > 0 {
		return nil, &failure{exitUsage, wrong}
	}
	return values, nil
}

// contextSource returns what the policy says about a context value. Names that differ by
// case alone would pass for each other in many JSON decoders.
func (op *operator) contextSource(name string) (manifests.ContextSource, bool) {
	for _, source := range op.policy.Context {
		if strings.EqualFold(source.Name, name) {
			return source, true
		}
	}
	return manifests.ContextSource{}, false
}

// contextNote returns what would allow a denied request, without a flag for a context value
// that the policy does not let flags set, nor a key that the policy has already, and a note
// on where the value comes from.
func (op *operator) contextNote(denial tool.Denial) (remedy, []string) {
	r := remedyOf(denial.Allow)
	source, named := op.contextSource(denial.Value)
	if denial.Permission != "context" || !named {
		return r, nil
	}
	if !r.isGrant() {
		r.policy = "" // the value, which stands or is missing at the policy's own key
	}
	switch source.From {
	case manifests.FromFlag:
		return r, []string{fmt.Sprintf("or write {from: fixed, value: VALUE} for it at %s", source.Origin)}
	case manifests.Fixed:
		r.flags = ""
		return r, nil
	}
	r.flags = ""
	return r, []string{fmt.Sprintf("%s says that %s comes from the %s, and the command line has none; say \"from: flag\" there to set it with --context",
		source.Origin, source.Name, source.From)}
}

// file returns the name of the file in which the operator's grants stand, or may.
func (op *operator) file() string {
	if op.options.config != "" {
		return op.options.config
	}
	return policyName
}

// unusedFile points out a policy that lies here and that nobody named. It is never used by
// itself: a folder with somebody's tools could bring a policy of its own.
func (op *operator) unusedFile() []string {
	if op.options.config != "" {
		return nil
	}
	if info, err := os.Stat(policyName); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return []string{fmt.Sprintf("there is a %s here; --config %s uses it", policyName, policyName)}
}

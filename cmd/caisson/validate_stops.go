package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/hostfuncs/secrets"
	"github.com/caisson-run/caisson/internal/records"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
)

// stops returns warnings about what keeps tools from being called under a policy. It loads them, which
// runs nothing.
func (v *validation) stops(ctx context.Context, file string, policy *manifests.Policy, beside []*manifests.Manifest) []manifests.Problem {
	var files []string
	for _, m := range beside {
		files = append(files, m.File)
	}
	h, err := caisson.Open(ctx, caisson.Options{Policies: []*manifests.Policy{policy}, Tools: files, NoCache: true})
	if err == nil {
		defer h.Close(context.WithoutCancel(ctx)) // nothing has run
		return append(stopping(policy, h.Problems(), ""), v.exposed(h, file, policy)...)
	}
	failed, ok := errors.AsType[*caisson.Error](err)
	if !ok || failed.Kind != caisson.ErrTools {
		return []manifests.Problem{problemIn(file, stopsCalls, noCall+err.Error(), fixStop)}
	}
	reasons := []error{failed.Err}
	if joined, ok := failed.Err.(interface{ Unwrap() []error }); ok {
		reasons = joined.Unwrap()
	}
	return stopping(policy, reasons, noCall)
}

const (
	noCall  = "no tool could be called under this policy: "
	fixStop = "correct the entry, or make what it names"
)

// stopping returns a warning for each reason why tools are not loaded, with a prefix before its text.
// The place of a grant that cannot be used is in the policy, and others are where the reason is.
func stopping(policy *manifests.Policy, reasons []error, prefix string) (warnings []manifests.Problem) {
	known := map[string]bool{}
	for _, reason := range reasons {
		var others []error
		for _, leaf := range leavesOf(reason) {
			failure, ok := errors.AsType[*runtime.Error](leaf)
			if !ok || !errors.Is(failure, runtime.ErrGrant) {
				others = append(others, leaf)
				continue
			}
			key := keyOf(policy, failure)
			if same := cmp.Or(key, failure.Err.Error()); known[same] {
				continue
			} else {
				known[same] = true
			}
			warnings = append(warnings, policy.Problem(key, stopsCalls, fmt.Sprintf("%s%s: %v", noCall, failure.Tool, failure.Err), fixStop))
		}
		source, _ := reason.(*registry.Error)
		for _, problem := range notLoaded(source, others) {
			problem.Kind, problem.Message = stopsCalls, prefix+problem.Message
			warnings = append(warnings, problem)
		}
	}
	return warnings
}

// keyOf returns the key of the grant or the denial that an error is about, or "" if there is none. A line may
// hold several, so the origin is not enough.
func keyOf(policy *manifests.Policy, err *runtime.Error) string {
	secret, isSecret := errors.AsType[*secrets.Error](err)
	directory, isDirectory := err.Grant, err.Grant != runtime.GrantPlace{}
	for i, grant := range policy.Grants {
		for j, s := range grant.Secrets {
			if isSecret && s.Name == secret.Name && cmp.Or(s.Origin, grant.Origin) == secret.Origin {
				return fmt.Sprintf("grants[%d].secrets[%d]", i, j)
			}
		}
		for j, f := range grant.Files {
			if isDirectory && !directory.Denied && f.Path.String() == directory.Path && cmp.Or(f.Origin, grant.Origin) == directory.Origin {
				return fmt.Sprintf("grants[%d].files[%d]", i, j)
			}
		}
	}
	for i, deny := range policy.Deny {
		if isDirectory && directory.Denied && deny.Files != nil && deny.Files.Path.String() == directory.Path && deny.Origin == directory.Origin {
			return fmt.Sprintf("deny[%d]", i)
		}
	}
	return ""
}

// exposed returns a warning if a tool may write to the folder of records or to the default cache, so that no call is
// run unless --state-dir or --cache-dir names another one. Of values in the paths of grants, it knows those that the
// policy fixes.
func (v *validation) exposed(h *caisson.Host, file string, policy *manifests.Policy) []manifests.Problem {
	state, err := v.options.stateFolder()
	if state != "" && err == nil {
		if found := v.exposes(h, file, policy, string(records.In(state)), "records of calls are kept in "+state, "--state-dir"); found != nil {
			return found
		}
	}
	cache, err := runtime.DefaultCacheDir()
	if err != nil {
		return nil
	}
	return v.exposes(h, file, policy, cache, "compiled code is kept in "+cache, "--cache-dir")
}

// exposes returns a warning if a tool may write to a folder, which the flag can move.
func (v *validation) exposes(h *caisson.Host, file string, policy *manifests.Policy, dir, what, flag string) []manifests.Problem {
	values := map[string]string{}
	for _, source := range policy.Context {
		if source.From == manifests.FromFixed {
			values[source.Name] = source.Value
		}
	}
	writer, found, err := h.WriterTo(dir, values)
	if !found || err != nil {
		return nil
	}
	return []manifests.Problem{policy.Problem(keyOfMount(policy, h.Registry(), writer, values), stopsCalls, fmt.Sprintf("%s%s, and %s may write to %s", noCall, what, writer.Tool, writer.Dir),
		"grant another folder, or choose another one for what is kept in each call, with "+flag+" DIR")}
}

// keyOfMount returns the key of the grant with which a tool may write to a directory, or "" if there is none.
func keyOfMount(policy *manifests.Policy, tools *registry.Registry, writer caisson.Writer, values map[string]string) string {
	entry, found := tools.Get(writer.Tool)
	for i, grant := range policy.Grants {
		alone := manifests.Policy{Grants: []manifests.Grant{grant}}
		if !found || len(alone.For(entry.Name, entry.Manifest.File).Files) == 0 {
			continue // the grant is for other tools
		}
		for j, mount := range grant.Files {
			host, err := mount.Host.Path(values)
			if err == nil && mount.Access == manifests.AccessReadWrite && absolute(host) == absolute(writer.Dir) {
				return fmt.Sprintf("grants[%d].files[%d]", i, j)
			}
		}
	}
	return ""
}

package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/hostfuncs/secrets"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
)

// stops returns warnings about what keeps tools from being called under a policy. It loads them and runs nothing.
func (c *checker) stops(
	ctx context.Context, file string, policy *manifests.Policy, checked []*manifests.Manifest,
) []manifests.Problem {
	var files []string
	for _, m := range checked {
		files = append(files, m.File)
	}
	h, err := caisson.Open(ctx, caisson.Options{Policies: []*manifests.Policy{policy}, Tools: files, NoCache: true})
	if err == nil {
		defer h.Close(context.WithoutCancel(ctx)) // nothing has run
		return append(stopping(policy, h.Problems(), ""), c.exposed(h, policy)...)
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

// stopping returns a warning for each reason why tools are not loaded, with a prefix before its text. A grant that
// cannot be used is reported at its place in the policy, and any other reason at its own place.
func stopping(policy *manifests.Policy, reasons []error, prefix string) (warnings []manifests.Problem) {
	known := map[string]bool{}
	for _, reason := range reasons {
		var others []error
		for _, leaf := range Leaves(reason) {
			failure, ok := errors.AsType[*runtime.Error](leaf)
			if !ok || !errors.Is(failure, runtime.ErrGrant) {
				others = append(others, leaf)
				continue
			}
			key := keyOf(policy, failure)
			same := cmp.Or(key, failure.Err.Error())
			if known[same] {
				continue
			}
			known[same] = true
			warnings = append(warnings, policy.Problem(key, stopsCalls,
				fmt.Sprintf("%s%s: %v", noCall, failure.Tool, failure.Err), fixStop))
		}
		source, _ := reason.(*registry.Error)
		for _, problem := range notLoaded(source, others) {
			problem.Kind, problem.Message = stopsCalls, prefix+problem.Message
			warnings = append(warnings, problem)
		}
	}
	return warnings
}

// keyOf returns the key of the grant or denial that an error is about, or "". A line may hold several.
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
			if isDirectory && !directory.Denied && f.Path.String() == directory.Path &&
				cmp.Or(f.Origin, grant.Origin) == directory.Origin {
				return fmt.Sprintf("grants[%d].files[%d]", i, j)
			}
		}
	}
	for i, deny := range policy.Deny {
		if isDirectory && directory.Denied && deny.Files != nil && deny.Files.Path.String() == directory.Path &&
			deny.Origin == directory.Origin {
			return fmt.Sprintf("deny[%d]", i)
		}
	}
	return ""
}

// exposed returns a warning if a tool may write to one of the folders of the host, so that no call is run there. Of
// values in the paths of grants, it knows those that the policy fixes.
func (c *checker) exposed(h *caisson.Host, policy *manifests.Policy) []manifests.Problem {
	values := map[string]string{}
	for _, source := range policy.Context {
		if source.From == manifests.FromFixed {
			values[source.Name] = source.Value
		}
	}
	for _, folder := range c.Folders {
		writer, found, err := h.WriterTo(folder.Dir, values)
		if found && err == nil {
			return []manifests.Problem{policy.Problem(keyOfMount(policy, h.Registry(), writer, values), stopsCalls,
				fmt.Sprintf("%s%s, and %s may write to %s", noCall, folder.Use, writer.Tool, writer.Dir),
				"grant another folder, or choose another one for what is kept in each call, with "+folder.Flag+" DIR")}
		}
	}
	return nil
}

// keyOfMount returns the key of the grant with which a tool may write to a directory, or "" if there is none.
func keyOfMount(
	policy *manifests.Policy, tools *registry.Registry, writer caisson.Writer, values map[string]string,
) string {
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

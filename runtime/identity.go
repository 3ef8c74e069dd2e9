package runtime

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/tool"
)

// Asks returns why each call of the tool needs approval, in one line for people, or "" if calls
// need none. The operator's [manifests.Grants] take precedence over the manifest: they can
// require approval of every call, or approve the calls of a destructive tool in advance. Calls
// of a destructive tool that gets none of the permissions it requests need no approval, since they
// can only be denied. Nor do calls of a client-run tool: the client is notified of each of them.
func (t *Tool) Asks() string { return t.asks }

// asks returns the result of [Tool.Asks].
func (p *permit) asks(m *manifests.Manifest, grants manifests.Grants) string {
	switch {
	case m.Execution == manifests.ExecutionClient:
		return ""
	case len(grants.Ask) > 0:
		return cmp.Or(grants.Ask[0], "the operator") + " asks for approval of each call"
	case !m.Behavior.Destructive || p.isPowerless():
		return ""
	}
	call := permission.NewName("approval", "each call")
	rules := permission.Rules{Module: p.module}
	for _, approval := range grants.Approved {
		rules.Grants = append(rules.Grants, permission.Statement{Rule: call, Binding: approval.Binding})
	}
	outcome := rules.DecideOne(call)
	if len(outcome.Effective) > 0 {
		return ""
	}
	return "the tool says that it is destructive" + rules.ForOthers(outcome, "the approval")
}

// isPowerless reports whether the tool requests permissions and gets none. Its calls can destroy
// nothing: they are denied, and nobody should have to approve of them before that.
func (p *permit) isPowerless() bool {
	return len(p.decisions) > 0 && !slices.ContainsFunc(p.decisions, func(d tool.Decision) bool { return d.Effective != "" })
}

// Identity returns a digest, in 64 lower-case hex digits, of everything that decides what a call
// of the tool can do: its module, how the manifest runs it, its effective permissions and its
// limits. Tools with the same identity do the same with the same arguments and context values.
// The digest does not depend on where grants are written, on their order, or on texts for people
// and models.
//
// The first call of Identity reads the module but does not compile it. From then on, calls run
// that module or fail. The error wraps [ErrModule] or [ErrDigest] if the module is at fault. The
// identity of a client-run tool covers no module.
func (t *Tool) Identity(ctx context.Context) (string, error) {
	digest, err := t.moduleDigest(ctx)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	h.Write([]byte("caisson-identity/v1\n"))
	h.Write(t.terms[:])
	h.Write(digest[:])
	return hex.EncodeToString(h.Sum(nil)), nil
}

// moduleDigest returns the digest of the only module that calls can run. It is zero for a
// client-run tool.
func (t *Tool) moduleDigest(ctx context.Context) (engine.Digest, error) {
	t.mu.Lock()
	known := t.digest
	t.mu.Unlock()
	if known != (engine.Digest{}) || t.isClients() {
		return known, nil
	}
	if err := ctx.Err(); err != nil {
		return engine.Digest{}, err
	}
	digest, err := moduleDigest(t.manifest)
	if err != nil {
		return engine.Digest{}, err
	}
	return digest, t.settle(digest, nil)
}

// settle records which module the tool has. It fails if the tool had a different one: what was
// granted to that module, or approved for it, must not pass to this one. That holds for the tool under each of
// its profiles, too.
func (t *Tool) settle(digest engine.Digest, compiled *engine.Module) error {
	if t.whole != nil {
		if err := t.whole.settle(digest, nil); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.digest != (engine.Digest{}) && t.digest != digest {
		return fmt.Errorf("%w: %s was %s when it was loaded and is %s now; load the tool again", ErrDigest, codeOf(t.manifest), t.digest, digest)
	}
	t.digest = digest
	if compiled != nil {
		t.module = compiled
	}
	return nil
}

// isClients reports whether the client runs the tool.
func (t *Tool) isClients() bool { return t.manifest.Execution == manifests.ExecutionClient }

// terms are what decides, together with the module, what calls of a tool can do. If their JSON is
// equal, calls can do the same. It may differ although calls can do the same; that costs only
// another request for approval.
type terms struct {
	Name      string
	Execution manifests.Execution
	Type      string
	ABI       modules.ABI
	Entry     string
	Config    map[string]string
	Variables int64    `json:",omitempty"`
	Arguments []string // the argv template
	Stdin     modules.Stdin
	Stdout    modules.Stdout
	Stderr    modules.Stderr
	// SuccessCodes are the exit codes besides 0 that are a success.
	SuccessCodes []int

	Parameters json.RawMessage
	Aliases    []manifests.ParameterAlias
	Context    []string
	Behavior   manifests.Behavior
	Requests   manifests.Permissions
	Limits     Limits

	Effective   []effectiveDecision
	Mounts      []effectiveMount
	Constants   []constantFiles `json:",omitempty"`
	Environment []string
	// Given and Denied are the grants and denials that concern the tool's requests, in canonical
	// form, sorted.
	Given, Denied []string
}

type effectiveDecision struct{ Permission, Requested, Effective string }

type effectiveMount struct {
	Guest, Host string // Host is absolute and may be a template
	Access      manifests.Access
	Quota       manifests.Quota
}

type constantFiles struct{ Guest, SHA256 string }

// termsDigest returns the digest of a tool's terms. It ignores grants that do not hold for the
// tool's module.
func (p *permit) termsDigest(m *manifests.Manifest, limits Limits, grants manifests.Grants) ([sha256.Size]byte, error) {
	t := terms{
		Name: m.Name, Execution: m.Execution, Type: m.Type, ABI: m.Module.ABI, Entry: m.Module.Entry, Config: m.Module.Config, Variables: m.Module.Variables,
		Stdin: m.Module.Stdin, Stdout: m.Module.Stdout, Stderr: m.Module.Stderr,
		SuccessCodes: m.Module.SuccessCodes, Parameters: m.ModelParameters, Aliases: m.ParameterAliases, Context: m.Context,
		Behavior: m.Behavior, Requests: m.Permissions, Limits: limits,
	}
	for _, template := range m.Module.Args {
		t.Arguments = append(t.Arguments, template.String())
	}
	for _, d := range p.decisions {
		effective := d.Effective
		if effective != "" && (d.Permission == "network" || d.Permission == "secrets") {
			effective = "granted" // the text depends on the grants' order; Given has the details
		}
		t.Effective = append(t.Effective, effectiveDecision{d.Permission, d.Requested, effective})
	}
	if err := t.permitted(p, m, grants); err != nil {
		return [sha256.Size]byte{}, err
	}
	text, err := json.Marshal(t)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return sha256.Sum256(text), nil
}

// permitted adds the permissions in full. Decisions are texts for people and leave things out.
func (t *terms) permitted(p *permit, m *manifests.Manifest, grants manifests.Grants) error {
	for _, variable := range p.environment {
		t.Environment = append(t.Environment, strconv.Quote(variable))
	}
	slices.Sort(t.Environment)
	for _, mount := range p.mounts {
		if mount.Tree != nil {
			digest := mount.Tree.Digest()
			t.Constants = append(t.Constants, constantFiles{mount.Guest.String(), hex.EncodeToString(digest[:])})
			continue
		}
		host, err := filepath.Abs(mount.Host.String())
		if err != nil {
			return err
		}
		// Quoted, since JSON replaces bytes that are not UTF-8: two paths would look equal.
		t.Mounts = append(t.Mounts, effectiveMount{mount.Guest.String(), strconv.Quote(host), mount.Access, manifests.Quota(mount.Quota)})
	}
	given := slices.DeleteFunc(grants.Elements(), func(e manifests.Element) bool { return !e.Holds(p.module) })
	var denied []manifests.Element
	for _, deny := range grants.Deny {
		denied = append(denied, deny.Element())
	}
	var err error
	if t.Given, err = canonical(m, given); err != nil {
		return err
	}
	t.Denied, err = canonical(m, denied)
	return err
}

// canonical returns the canonical form of the elements that concern a tool, sorted and without
// duplicates.
func canonical(m *manifests.Manifest, elements []manifests.Element) ([]string, error) {
	var texts []string
	for _, e := range elements {
		if !e.Concerns(m) {
			continue
		}
		text, err := e.Canonical()
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return slices.Compact(texts), nil
}

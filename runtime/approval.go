package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
	"github.com/caisson-run/caisson/runtime/internal/engine"
)

// Asks says why each call of the tool has to be approved, in one line for people, or is empty. The
// operator's word comes first: where [manifests.Grants] ask, each call is asked for, and where they
// approve, none of a tool that is destructive. Calls of a tool that the client runs need no approval
// besides: it is told of each of them.
func (t *Tool) Asks() string { return t.asks }

// asks decides it, once for a tool.
func (p *permit) asks(m *manifests.Manifest, grants manifests.Grants) string {
	switch {
	case m.Execution == manifests.Client:
		return ""
	case len(grants.Ask) > 0:
		return or(grants.Ask[0], "the operator") + " asks for approval of each call"
	case !m.Behavior.Destructive:
		return ""
	}
	call := permission.NewName("approval", "each call")
	var approved []permission.Statement
	for _, approval := range grants.Approved {
		approved = append(approved, permission.Statement{Rule: call, Origin: approval.Origin, SHA256: approval.SHA256})
	}
	outcome := permission.Decide([]permission.Statement{{Rule: call}}, approved, nil, p.module)[0]
	if len(outcome.Effective) > 0 {
		return ""
	}
	reason := "the tool says that it is destructive"
	for _, i := range outcome.Elsewhere {
		reason += "; " + approved[i].OtherModule("the approval", p.module)
	}
	return reason
}

// Identity returns a digest, in 64 lower-case hex digits, of what decides what a call of the tool
// can do: its module, what the manifest says of how it is run, its effective permissions and its
// limits. Two tools with the same one do the same with the same arguments and context values.
// Where grants are written, and in which order, makes no difference, nor do texts for people and models.
//
// The first time it reads the module, but does not compile it; calls then run that module or none.
// The error wraps [ErrModule] or [ErrDigest] where the module is at fault. The tool of a client has
// no module.
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

// moduleDigest returns the digest of the one module that calls can run; zero for a client's tool.
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

// settle notes which module the tool has. It fails where it has had another: what was granted to
// that one, or approved of it, must not pass to this one.
func (t *Tool) settle(digest engine.Digest, compiled *engine.Module) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.digest != (engine.Digest{}) && t.digest != digest {
		return fmt.Errorf("%w: %s was %s when it was loaded and is %s now; load the tool again", ErrDigest, t.manifest.Module.Path, t.digest, digest)
	}
	t.digest = digest
	if compiled != nil {
		t.module = compiled
	}
	return nil
}

// isClients reports whether the client runs the tool.
func (t *Tool) isClients() bool { return t.manifest.Execution == manifests.Client }

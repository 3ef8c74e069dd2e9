package runtime

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/caisson-run/caisson/runtime/internal/engine"
)

// Asks returns why each call of the tool needs approval, in one line for people, or "" if calls
// need none. The operator's [manifests.Grants] take precedence over the manifest: they can
// require approval of every call, or approve the calls of a destructive tool in advance. Calls
// of a destructive tool that gets none of the permissions it requests need no approval, since they
// can only be denied. Nor do calls of a client-run tool: the client is notified of each of them.
func (t *Tool) Asks() string { return t.asks }

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
	if err := cmp.Or(ctx.Err(), t.broken); err != nil {
		return engine.Digest{}, err
	}
	digest, err := t.hashing.do(ctx, t.runtime.base, "digest", func(ctx context.Context) (engine.Digest, error) {
		if err := t.runtime.enterReader(ctx); err != nil {
			return engine.Digest{}, err
		}
		defer t.runtime.leaveReader()
		return moduleDigest(t.manifest)
	})
	if err != nil {
		return engine.Digest{}, err
	}
	return digest, t.settle(digest, nil)
}

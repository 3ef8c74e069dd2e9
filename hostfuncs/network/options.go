package network

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
)

// Options say what one tool may reach, and by which means.
type Options struct {
	Tool     string // the tool's name, for what receipts suggest
	Module   string // its module's SHA-256, in lower-case hex digits; empty: no grant that is bound to one holds
	Requests []manifests.NetworkPermission
	Grants   []manifests.NetworkGrant
	Deny     []Denied
	// NoNetwork names the profile that takes all of the network away; empty for none.
	NoNetwork string
	Secrets   Secrets          // nil: none
	Resolver  *net.Resolver    // nil: the system's
	Logger    *slog.Logger     // for causes that hold addresses; nil: they are dropped
	Now       func() time.Time // nil: time.Now
}

// Denied is what a line of the operator's takes away.
type Denied struct {
	Origin string // where it is written; it may be empty
	manifests.NetworkDeny
}

// Secrets puts secrets into requests and takes them out of what comes back. Its methods are
// called by several goroutines at once.
type Secrets interface {
	// Places are where secrets go in requests to an origin. A guest may not set these
	// headers itself, nor any that [manifests.FoldName] makes the same.
	Places(scheme string, host permission.Host, port int) []manifests.SecretPlace
	// Inject puts the secrets of the request's origin into its header, its query or its
	// body, and returns the body. It is called once for each hop, after the policy has
	// allowed that hop. The text of its error is shown to the guest.
	Inject(request *http.Request, body []byte) ([]byte, error)
	// Mask returns text without the secrets' values. It is for short texts.
	Mask(text []byte) []byte
	// MaskFirst masks text and returns what became of its first n bytes. If ctx ends before
	// that, it returns the context's error soon.
	MaskFirst(ctx context.Context, text []byte, n int) ([]byte, error)
	// Longest is the length in bytes of the longest form that Mask finds.
	Longest() int
}

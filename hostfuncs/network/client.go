package network

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

type Options struct {
	Tool     string // the tool's name, for the suggestions in receipts
	Module   string // its module's SHA-256 in lower-case hex; if empty, no grant bound to a module applies
	Requests []manifests.NetworkPermission
	Grants   []manifests.NetworkGrant
	Deny     []manifests.Deny // those of other kinds are ignored
	// NoNetwork is the name of the profile that denies all network access, if any.
	NoNetwork string
	Secrets   secretValues  // nil: none; a [secrets.Set]
	Resolver  *net.Resolver // nil: the system's resolver
	Logger    *slog.Logger  // for causes that hold addresses; nil: they are dropped
}

// Client enforces the network permission of one tool. It is safe for concurrent use.
type Client struct {
	permission *effective
	decisions  []tool.Decision
	secrets    secretValues // nil for none
	resolver   *net.Resolver
	logger     *slog.Logger
	running    inFlight
}

// New returns the client of one tool. It fails, with an error for the operator, if a permission, a
// grant or a denial is invalid, or if a file of certificate authorities cannot be read.
func New(options Options) (*Client, error) {
	permission, err := readPermission(options)
	if err != nil {
		return nil, &hostfuncs.Error{Op: "new", Kind: hostfuncs.ErrInvalid, Message: err.Error(), Cause: err}
	}
	c := &Client{
		permission: permission,
		decisions:  permission.decisions(options.Requests),
		secrets:    options.Secrets,
		resolver:   options.Resolver,
		logger:     options.Logger,
		running:    inFlight{closed: "the tool is being closed"},
	}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

func readPermission(options Options) (*effective, error) {
	p := &effective{tool: options.Tool, known: newRanges()}
	for _, requested := range options.Requests {
		r, err := readRequest(requested)
		if err != nil {
			return nil, fmt.Errorf("the manifest's permission: %w", err)
		}
		r.methods = slices.DeleteFunc(r.methods, isTunnel)
		p.requests = append(p.requests, r)
	}
	for _, granted := range options.Grants {
		g, err := readGrant(granted, options.Module)
		if err != nil {
			return nil, fmt.Errorf("the grant%s: %w", at(granted.Origin), err)
		}
		p.grants = append(p.grants, g)
		p.isSpecial = p.isSpecial || !g.reach.isPublic()
	}
	if options.NoNetwork != "" {
		everything, err := readDenial("", manifests.NetworkDeny{})
		if err != nil {
			return nil, err
		}
		everything.profile = options.NoNetwork
		p.denials = append(p.denials, everything)
	}
	for _, denied := range options.Deny {
		if denied.Network == nil {
			continue
		}
		d, err := readDenial(denied.Origin, *denied.Network)
		if err != nil {
			return nil, fmt.Errorf("the denial%s: %w", at(denied.Origin), err)
		}
		p.denials = append(p.denials, d)
		p.isSpecial = p.isSpecial || len(d.reach) > 0
	}
	p.decide(options.Module)
	return p, nil
}

// Decisions returns the decision on each request of the manifest, in the manifest's order.
func (c *Client) Decisions() []tool.Decision { return c.decisions }

// Reaches reports whether the tool may send any request with one of the schemes and ports to a host. Without schemes it
// is https, and without ports each scheme's own. It ignores the addresses to which requests connect.
func (c *Client) Reaches(host string, schemes []string, ports []int) bool {
	origin, err := readRule(manifests.NetworkPermission{Host: host, Schemes: schemes, Ports: ports})
	return err == nil && c.permission.reaches(origin)
}

// Close cancels the requests of all sessions and waits for them. Later requests fail with
// [hostfuncs.ErrUnavailable]. Close may be called more than once. Open sessions keep their idle connections
// until they are closed, but at most for a few seconds.
func (c *Client) Close() error {
	c.running.close()
	return nil
}

func (c *Client) maskText(text string) string {
	if c.secrets == nil {
		return text
	}
	return string(c.secrets.Mask([]byte(text)))
}

// shown returns a URL without its query and secrets, for display.
func (c *Client) shown(l *location) string {
	u := l.url
	u.RawQuery, u.ForceQuery = "", false
	return shown(c.maskText(u.String()))
}

// log logs a cause that the guest may not see. The text is masked, since logs are kept.
func (c *Client) log(ctx context.Context, level slog.Level, message, target string, cause error) {
	if cause == nil || !c.logger.Enabled(ctx, level) {
		return
	}
	c.logger.Log(ctx, level, message, "tool", c.permission.tool, "target", target, "cause", c.maskText(cause.Error()))
}

// secretValues injects secrets into requests and masks them in responses. Implementations must be safe
// for concurrent use.
type secretValues interface {
	// Places returns where secrets go in requests to an origin. A guest may not set these
	// headers itself, nor any header for which [permission.FoldHeader] returns the same name.
	Places(origin permission.Origin) []manifests.SecretPlace
	// Unsent returns receipts for the secrets that the operator granted for the host and that Inject does not
	// put into requests to the origin.
	Unsent(origin permission.Origin) []tool.Denial
	// Inject puts the secrets of the request's origin into its header, its query or its
	// body, and returns the body. It is called once for each hop, after the permission has
	// allowed that hop. The text of its error is shown to the guest.
	Inject(request *http.Request, body []byte) ([]byte, error)
	// Mask returns text with the secrets' values masked. It is for short texts.
	Mask(text []byte) []byte
	// MaskFirst masks text and returns the masked form of its first n bytes. If ctx is done
	// earlier, it returns the context's error soon after.
	MaskFirst(ctx context.Context, text []byte, n int) ([]byte, error)
	// Longest returns the length in bytes of the longest form that Mask finds.
	Longest() int
}

// Request is a request of a guest. None of its fields are trusted.
type Request struct {
	Method string // in upper case; default GET; CONNECT and TRACE are rejected
	URL    string // absolute
	// Headers are sent with the request. Headers that control the transport or override the
	// request's method, path or host are rejected. Accept-Encoding is ignored.
	Headers [][2]string
	Body    []byte // must not be modified until the request has ended
	// Timeout limits the request, in addition to its context. If it is zero and the context
	// has no deadline, the limit is 30 seconds.
	Timeout time.Duration
}

// Response is the response to the last hop, with the values of secrets masked.
type Response struct {
	Status int
	URL    string // of the last hop, without user info and fragment
	// Headers are sorted by name, and names are in canonical form. All text is printable, valid
	// UTF-8. Hop-by-hop headers are omitted.
	Headers [][2]string
	Body    []byte // decompressed
	// Truncated reports whether the body was cut at the session's [Limits].
	Truncated bool
}

package network

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
	"github.com/caisson-run/caisson/tool"
)

// maxClientInFlight is how many requests all sessions of a client may have in flight.
// Each of 64 calls may have as many as a session may, so that a few cannot keep the others out.
const maxClientInFlight = 64 * MaxInFlight

// Client is what one tool has of the network: its effective permissions. It is safe for
// concurrent use.
type Client struct {
	permission *effective
	decisions  []tool.Decision
	secrets    Secrets // nil for none
	resolver   *net.Resolver
	logger     *slog.Logger
	now        func() time.Time

	mu      sync.Mutex
	closed  bool
	running map[*exchange]struct{}
	wait    sync.WaitGroup // for the running
}

// New returns the client of one tool. It fails, with an error for the operator, where a
// permission or a grant contradicts itself, and where a file of authorities cannot be read.
func New(options Options) (*Client, error) {
	permission, err := readPermission(options)
	if err != nil {
		return nil, &Error{Op: "new", Kind: ErrInvalid, Message: err.Error(), cause: err}
	}
	c := &Client{
		permission: permission,
		decisions:  permission.decisions(options.Requests),
		secrets:    options.Secrets,
		resolver:   options.Resolver,
		logger:     options.Logger,
		now:        options.Now,
		running:    map[*exchange]struct{}{},
	}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	if c.now == nil {
		c.now = time.Now
	}
	return c, nil
}

// Decisions says what became of each request of the manifest, in its order.
func (c *Client) Decisions() []tool.Decision { return c.decisions }

// Close cancels the requests of all sessions and waits for them. What comes later fails with
// [ErrUnavailable]. It can be called again. Sessions that are open keep idle connections,
// until they are closed, for some seconds.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	for e := range c.running {
		e.cancel()
	}
	c.mu.Unlock()
	c.wait.Wait()
	return nil
}

// enter counts an exchange among those that run.
func (c *Client) enter(e *exchange) *Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return unavailable("the tool is being closed", errClosed)
	}
	if len(c.running) >= maxClientInFlight {
		return limit("http_in_flight", maxClientInFlight, fmt.Sprintf("%d requests of this tool are in flight", maxClientInFlight))
	}
	c.running[e] = struct{}{}
	c.wait.Add(1)
	return nil
}

func (c *Client) leave(e *exchange) {
	c.mu.Lock()
	delete(c.running, e)
	c.mu.Unlock()
	c.wait.Done()
}

func (c *Client) maskText(text string) string {
	if c.secrets == nil {
		return text
	}
	return string(c.secrets.Mask([]byte(text)))
}

// shown returns a URL without its query, to show to people.
func (c *Client) shown(l *location) string {
	u := l.url
	u.RawQuery, u.ForceQuery = "", false
	return shown(c.maskText(u.String()))
}

// log tells the operator what a guest may not see. It is masked all the same: logs are kept.
func (c *Client) log(ctx context.Context, level slog.Level, message, target string, cause error) {
	if cause == nil || !c.logger.Enabled(ctx, level) {
		return
	}
	c.logger.Log(ctx, level, message, "tool", c.permission.tool, "target", target, "cause", c.maskText(cause.Error()))
}

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

package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/caisson-run/caisson/server/auth"
)

// refusals logs refused requests: the first of a kind and, if there are many, a sample of the others with their number.
// A kind is the status and the token, or no token. It is safe for concurrent use.
type refusals struct {
	to *slog.Logger

	mu     sync.Mutex
	byKind *lru.Cache[refusalKind, *refusalsOf]
	lost   int // of kinds that are no longer known
}

type refusalKind struct {
	status int
	token  string
}

// refusalsOf counts the refusals of one kind.
type refusalsOf struct {
	limit  *rate.Limiter
	hidden int // that were not logged since the last that was
}

// Bounds on what is logged of each kind: 20 lines, and then one every ten seconds. The number of kinds is bounded by
// that of the tokens that work.
const (
	refusalBurst = 20
	refusalEvery = 10 * time.Second
	refusalKinds = 10_000
)

func newRefusals(to *slog.Logger) *refusals {
	r := &refusals{to: to}
	r.byKind, _ = lru.NewWithEvict(refusalKinds, func(_ refusalKind, of *refusalsOf) { r.lost += of.hidden }) // fails only for a size that is not positive
	return r
}

// log logs a refused request, or counts it.
func (r *refusals) log(request *http.Request, status int, why string) {
	c, _ := auth.From(request.Context())
	hidden, ok := r.take(refusalKind{status, c.ID})
	if !ok {
		return
	}
	r.to.WarnContext(request.Context(), "request refused", append([]any{"why", why, "status", status}, described(request, hidden)...)...)
}

// described returns the fields of a line about a request, before which some lines like it were not logged.
func described(r *http.Request, hidden int) []any {
	c, _ := auth.From(r.Context())
	fields := []any{"method", truncate(r.Method), "path", truncate(r.URL.Path), "remote", r.RemoteAddr, "token", c.ID, "tenant", c.Tenant}
	if hidden > 0 {
		fields = append(fields, "not_logged", hidden)
	}
	return fields
}

// take reports whether the next refusal of a kind is to be logged, and how many before it were not.
func (r *refusals) take(kind refusalKind) (hidden int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of, known := r.byKind.Get(kind)
	if !known {
		of = &refusalsOf{limit: rate.NewLimiter(rate.Every(refusalEvery), refusalBurst)}
		r.byKind.Add(kind, of)
	}
	if !of.limit.Allow() {
		of.hidden++
		return 0, false
	}
	hidden, of.hidden = of.hidden, 0
	return hidden, true
}

// flush logs how many refusals have not been logged.
func (r *refusals) flush(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hidden := r.lost
	for _, of := range r.byKind.Values() {
		hidden += of.hidden
		of.hidden = 0
	}
	r.lost = 0
	if hidden > 0 {
		r.to.WarnContext(ctx, "requests refused", "not_logged", hidden)
	}
}

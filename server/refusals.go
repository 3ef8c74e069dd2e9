package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/caisson-run/caisson/internal/sampling"
	"github.com/caisson-run/caisson/server/auth"
)

// refusals logs refused requests: the first of a kind and, if there are many, a sample of the others with their number.
// A kind is the status and the token, or no token. It is safe for concurrent use.
type refusals struct {
	to *slog.Logger

	mu     sync.Mutex
	byKind *lru.Cache[refusalKind, *sampling.Sample]
	lost   int // of kinds that are no longer known
}

type refusalKind struct {
	status int
	token  string
}

// refusalKinds bounds the kinds that are told apart. Their number is bounded by that of the tokens that work.
const refusalKinds = 10_000

func newRefusals(to *slog.Logger) *refusals {
	r := &refusals{to: to}
	lose := func(_ refusalKind, of *sampling.Sample) { r.lost += of.Hidden }
	r.byKind, _ = lru.NewWithEvict(refusalKinds, lose) // fails only for a size that is not positive
	return r
}

// log logs a refused request, or counts it.
func (r *refusals) log(request *http.Request, status int, why string) {
	c, _ := auth.From(request.Context())
	hidden, ok := r.take(refusalKind{status, c.ID})
	if !ok {
		return
	}
	r.to.WarnContext(request.Context(), "request refused",
		append([]any{"why", why, "status", status}, described(request, hidden)...)...)
}

// described returns the fields of a line about a request, before which some lines like it were not logged.
func described(r *http.Request, hidden int) []any {
	c, _ := auth.From(r.Context())
	fields := []any{"method", truncate(r.Method), "path", truncate(r.URL.Path), "remote", r.RemoteAddr, "token", c.ID,
		"tenant", c.Tenant}
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
		of = sampling.New()
		r.byKind.Add(kind, of)
	}
	return of.Take()
}

// flush logs how many refusals have not been logged.
func (r *refusals) flush(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hidden := r.lost
	for _, of := range r.byKind.Values() {
		hidden += of.Hidden
		of.Hidden = 0
	}
	r.lost = 0
	if hidden > 0 {
		r.to.WarnContext(ctx, "requests refused", "not_logged", hidden)
	}
}

// truncate shortens untrusted text for the log.
func truncate(text string) string {
	if len(text) > 100 {
		return text[:100] + "…"
	}
	return text
}

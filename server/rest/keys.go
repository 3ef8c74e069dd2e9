package rest

import (
	"container/list"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxKey is the longest key in bytes.
const maxKey = 255

// keys are the answers to requests that had a key. It is safe for concurrent use.
type keys struct {
	options KeyOptions

	mu       sync.Mutex
	byTenant map[string]*keysOf
}

// keysOf are a tenant's.
type keysOf struct {
	byKey  map[requestKey]*list.Element // of *keptAnswer
	oldest list.List
	bytes  int
}

// requestKey is what a key belongs to: two callers' keys, or those of two paths, have nothing to do with each other.
type requestKey struct {
	owner     owner
	path, key string
}

// keptAnswer is the answer to a request, or to be.
type keptAnswer struct {
	of      requestKey
	body    [sha256.Size]byte // of the request
	until   time.Time
	ready   chan struct{} // closed when the request was answered
	reply   reply
	failure error // why there is no answer to a request that has had its effect
	dropped bool  // the request was refused, so that it can be made again
}

// serveIdempotent serves a request with a key: the first time as any other, and again with the same answer.
func (x *exchange) serveIdempotent(given []string) (reply, error) {
	key := given[0]
	switch {
	case len(given) > 1:
		return reply{}, refuse(http.StatusBadRequest, "%s is given more than once", keyHeader)
	case key == "": // more likely an empty variable than no key, and then a repetition would run again
		return reply{},
			refuse(http.StatusBadRequest, "%s is empty; leave it out for a request that is not repeated", keyHeader)
	case len(key) > maxKey:
		return reply{}, refuse(http.StatusBadRequest, "%s is longer than %d bytes", keyHeader, maxKey)
	}
	body := sha256.Sum256(x.body)
	// The path is a part of the text of the whole request line, of which a key must not hold the rest.
	of := requestKey{ownerOf(x.caller), strings.Clone(x.request.URL.Path), key}
	for {
		k, first := x.api.keys.take(x.caller.Tenant, of, body)
		if first {
			return x.first(k)
		}
		if k.body != body {
			return reply{}, errOtherBody
		}
		select {
		case <-k.ready:
		case <-x.request.Context().Done():
			return reply{}, x.request.Context().Err()
		}
		switch {
		case k.failure != nil:
			return reply{}, k.failure
		case !k.dropped:
			return x.repeat(k.reply)
		}
	}
}

var errOtherBody = refuse(http.StatusUnprocessableEntity,
	"this %s was used with another body; use a new one for each request", keyHeader)

// errNoAnswer means that a request has had its effect, and that its answer could not be made.
var errNoAnswer = errors.New("the answer could not be made")

// first serves the first request with a key.
func (x *exchange) first(k *keptAnswer) (answered reply, err error) {
	kept, isKept := reply{}, false
	defer func() { x.api.keys.put(x.caller.Tenant, k, kept, isKept) }() // also if a handler panics
	stored, err := x.takeStored(k)
	if err != nil {
		return reply{}, err
	}
	if stored.done {
		kept, isKept = stored.reply, true
		return x.repeat(kept)
	}
	defer func() { stored.end(x, k, kept, isKept) }()
	defer func() {
		if !isKept && x.begun != nil { // such as if the client gave up while its answer waited for room
			isKept, k.failure = true, errNoAnswer
			kept, k.failure = x.begun()
		}
	}()
	answered, err = x.handle()
	kept, isKept = answered, err == nil && answered.status != 0
	return answered, err
}

// repeat gives an answer again.
func (x *exchange) repeat(kept reply) (reply, error) {
	x.w.Header().Set("Idempotent-Replayed", "true")
	if kept.runID != "" {
		r, err := x.api.runs.get(x.request.Context(), x.caller.Tenant, kept.runID)
		if err != nil {
			return reply{}, err
		}
		if kept, err = x.answerRun(r, kept.status); err != nil {
			return reply{}, err
		}
	}
	if !x.wantsEvents() || x.route.events == "" {
		kept.streamed, kept.counted = false, true
		return kept, nil
	}
	if kept.location != "" {
		x.w.Header().Set("Location", kept.location)
	}
	stream := x.newEvents()
	defer stream.end()
	stream.send("report", kept.body)
	return reply{streamed: true}, nil
}

// take returns the entry of a key, and whether the caller has to answer the request.
func (s *keys) take(tenant string, of requestKey, body [sha256.Size]byte) (k *keptAnswer, first bool) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.byTenant[tenant]
	if t == nil {
		t = &keysOf{byKey: map[requestKey]*list.Element{}}
		s.byTenant[tenant] = t
	}
	t.trim(now, s.options)
	if e := t.byKey[of]; e != nil {
		return e.Value.(*keptAnswer), false
	}
	k = &keptAnswer{of: of, body: body, until: now.Add(s.options.Keep), ready: make(chan struct{})}
	t.byKey[of] = t.oldest.PushBack(k)
	return k, true
}

// put keeps the answer to a request, or forgets the key if the request was refused.
func (s *keys) put(tenant string, k *keptAnswer, r reply, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(k.ready)
	t := s.byTenant[tenant]
	if !answered {
		k.dropped = true
		t.forget(t.byKey[k.of])
		return
	}
	k.reply = r
	t.bytes += len(r.body)
	t.trim(time.Now(), s.options)
}

// sweep forgets the answers of all tenants that are too old.
func (s *keys) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for tenant, t := range s.byTenant {
		if t.trim(time.Now(), s.options); t.oldest.Len() == 0 {
			delete(s.byTenant, tenant)
		}
	}
}

// trim forgets the oldest answers, as far as they are too old or too many. Requests that are not answered yet stay.
func (t *keysOf) trim(now time.Time, o KeyOptions) {
	for e := t.oldest.Front(); e != nil; {
		k, next := e.Value.(*keptAnswer), e.Next()
		if now.Before(k.until) && t.oldest.Len() <= o.PerTenant && t.bytes <= o.Bytes {
			return
		}
		select {
		case <-k.ready:
			t.forget(e)
		default:
		}
		e = next
	}
}

func (t *keysOf) forget(e *list.Element) {
	if e == nil {
		return
	}
	k := e.Value.(*keptAnswer)
	t.bytes -= len(k.reply.body)
	delete(t.byKey, k.of)
	t.oldest.Remove(e)
}

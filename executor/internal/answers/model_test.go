package answers_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor/internal/answers"
	"github.com/caisson-run/caisson/internal/testsize"
)

// reference is the simplest model of a cache. Moments are counted in steps.
type reference struct {
	bound    int64
	step     int
	kept     []keptAnswer // the least recently used first
	barriers []*barrier   // all that there ever were
	flights  []*modelFlight
}

type keptAnswer struct {
	key     string
	domains []string
	answer  sized
	expires time.Time
	asked   int
}

type barrier struct {
	domains    []string
	began, end int // end is 0 while it is in progress
}

type modelFlight struct {
	key     string
	began   int
	waiters []*modelCaller
}

// modelCaller pairs a caller with the state that it must be in.
type modelCaller struct {
	*caller
	q      answers.Question[string]
	ready  bool         // it waits for a place before it asks
	alone  bool         // a flight that it waited for has failed
	began  int          // its ask
	flight *modelFlight // of its ask; nil if no other caller may join it
	want   state
}

func (m *modelCaller) returns(answer sized, from answers.Source) {
	m.ends(state{returned: true, answer: answer, from: from})
}

// ends sets the state in which the caller is left, but for its places.
func (m *modelCaller) ends(s state) {
	s.places = m.want.places
	m.want = s
}

func (m *modelCaller) ended() bool {
	return m.want.returned || m.want.exited || m.want.panicked != nil
}

// changed reports whether a barrier of the domains began or ended since.
func (r *reference) changed(domains []string, since int) bool {
	return slices.ContainsFunc(r.barriers, func(b *barrier) bool {
		return meet(b.domains, domains) && (b.began > since || b.end > since)
	})
}

func (r *reference) underWay(domains []string) bool {
	return slices.ContainsFunc(r.barriers, func(b *barrier) bool { return meet(b.domains, domains) && b.end == 0 })
}

func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool { return slices.Contains(b, x) })
}

func (r *reference) bytes() (sum int64) {
	for _, k := range r.kept {
		sum += k.answer.size
	}
	return sum
}

func (r *reference) get(key string) (sized, bool) {
	i := slices.IndexFunc(r.kept, func(k keptAnswer) bool { return k.key == key })
	if i < 0 {
		return sized{}, false
	}
	k := r.kept[i]
	r.kept = slices.Delete(r.kept, i, i+1)
	if !r.good(k) {
		return sized{}, false
	}
	r.kept = append(r.kept, k)
	return k.answer, true
}

func (r *reference) put(q answers.Question[string], since int, answer sized) {
	if r.changed(q.Domains, since) || r.underWay(q.Domains) || answer.size < 1 || answer.size > r.bound || q.TTL <= 0 {
		return
	}
	r.kept = slices.DeleteFunc(r.kept, func(k keptAnswer) bool { return k.key == q.Key })
	for len(r.kept) > 0 && (r.bytes() > r.bound-answer.size || !r.good(r.kept[0])) {
		r.kept = r.kept[1:]
	}
	r.kept = append(r.kept, keptAnswer{q.Key, q.Domains, answer, time.Now().Add(q.TTL), since})
}

func (r *reference) good(k keptAnswer) bool {
	return time.Now().Before(k.expires) && !r.changed(k.domains, k.asked)
}

func (r *reference) beginBarrier(domains []string) *barrier {
	b := &barrier{domains: domains, began: r.step}
	r.barriers = append(r.barriers, b)
	return b
}

// do takes a caller as far as it can go.
func (r *reference) do(m *modelCaller) {
	if answer, ok := r.get(m.q.Key); ok {
		m.want.places = 0
		m.returns(answer, answers.Kept)
		return
	}
	for _, f := range r.flights {
		if !m.alone && f.key == m.q.Key && !r.changed(m.q.Domains, f.began) {
			m.want.places = 0
			f.waiters = append(f.waiters, m)
			return
		}
	}
	if m.ready && m.want.places == 0 {
		m.want.waits = true
		return
	}
	m.want.asks, m.began = true, r.step
	if !m.alone {
		m.flight = &modelFlight{key: m.q.Key, began: r.step}
		r.flights = append(r.flights, m.flight)
	}
}

// place ends a caller's wait for a place.
func (r *reference) place(m *modelCaller, err error) {
	m.want.waits = false
	if err != nil {
		m.ends(state{returned: true, err: err})
		return
	}
	m.want.places = 1
	r.do(m)
}

func (r *reference) cancel(m *modelCaller) {
	for _, f := range r.flights {
		if i := slices.Index(f.waiters, m); i >= 0 {
			f.waiters = slices.Delete(f.waiters, i, i+1)
		}
	}
	m.ends(state{returned: true, err: context.Canceled})
}

func (r *reference) finish(m *modelCaller, end outcome) {
	switch end.how {
	case "panic":
		m.ends(state{panicked: "ask"})
		end.keep = false
	case "goexit":
		m.ends(state{exited: true})
		end.keep = false
	default:
		m.returns(end.answer, answers.Asked)
	}
	if end.keep {
		r.put(m.q, m.began, end.answer)
	}
	if m.flight == nil {
		return
	}
	r.flights = slices.DeleteFunc(r.flights, func(f *modelFlight) bool { return f == m.flight })
	for _, waiter := range m.flight.waiters {
		if end.keep {
			waiter.returns(end.answer, answers.Shared)
			continue
		}
		waiter.alone = true
		r.do(waiter)
	}
}

// moment is one of the cache's, with the corresponding step.
type moment struct {
	answers.Moment
	q     answers.Question[string]
	began int
}

// run is a cache and its reference, to which the same happens.
type run struct {
	*testing.T
	random    *rand.Rand
	cache     *cache
	reference reference
	callers   []*modelCaller // all that there ever were
	open      map[*barrier]func()
	moments   []moment
	log       []string
}

// domainsOf are those of each key.
var domainsOf = map[string][]string{"none": nil, "a": {"A"}, "b": {"B"}, "ab": {"A", "B"}, "aba": {"A", "B", "A"}, "c": {"C"}, "c2": {"C"}}

func TestCacheIsAsItsReference(t *testing.T) {
	for seed := range uint64(testsize.Of(20, 60)) {
		synctest.Test(t, func(t *testing.T) {
			r := &run{T: t, random: rand.New(rand.NewPCG(seed, 1)), cache: newCache(t, 12), reference: reference{bound: 12}, open: map[*barrier]func(){}}
			for range 300 {
				r.step()
			}
			r.end()
		})
	}
}

func (r *run) step() {
	r.reference.step++
	switch n := r.random.IntN(100); {
	case n < 30:
		r.do()
	case n < 50:
		r.finish()
	case n < 60:
		r.place()
	case n < 65:
		r.cancel()
	case n < 70:
		r.get()
	case n < 75:
		r.began()
	case n < 82:
		r.put()
	case n < 86:
		r.barrier()
	case n < 92:
		r.endBarrier()
	default:
		r.sleep()
	}
	r.check()
}

func (r *run) logf(format string, values ...any) {
	r.log = append(r.log, fmt.Sprintf("%d: ", r.reference.step)+fmt.Sprintf(format, values...))
}

func (r *run) check() {
	synctest.Wait()
	for i, m := range r.callers {
		require.Equal(r, m.want, m.state, "caller %d of %s after %v", i, m.q.Key, r.log)
	}
}

func (r *run) question() answers.Question[string] {
	keys := []string{"none", "a", "b", "ab", "aba", "c", "c2"}
	q := question(keys[r.random.IntN(len(keys))])
	q.Domains, q.TTL = domainsOf[q.Key], time.Duration(r.random.IntN(8))
	return q
}

func (r *run) answer() sized { return sized{r.reference.step, int64(r.random.IntN(15))} }

func (r *run) do() {
	m := &modelCaller{q: r.question(), ready: r.random.IntN(2) == 0}
	r.logf("caller %d asks %s, ready %t", len(r.callers), m.q.Key, m.ready)
	r.callers = append(r.callers, m)
	r.reference.do(m)
	if m.ready {
		m.caller = askWhenReady(r.T, r.cache, m.q)
	} else {
		m.caller = ask(r.T, r.cache, m.q)
	}
}

// pick returns a caller that satisfies the condition, if there is one.
func (r *run) pick(condition func(*modelCaller) bool) (int, *modelCaller) {
	for _, i := range r.random.Perm(len(r.callers)) {
		if condition(r.callers[i]) {
			return i, r.callers[i]
		}
	}
	return 0, nil
}

func (r *run) finish() {
	i, m := r.pick(func(m *modelCaller) bool { return m.want.asks })
	if m == nil {
		return
	}
	end := outcome{answer: r.answer(), keep: r.random.IntN(3) > 0}
	switch r.random.IntN(10) {
	case 0:
		end.how = "panic"
	case 1:
		end.how = "goexit"
	}
	r.logf("caller %d ends %+v", i, end)
	r.reference.finish(m, end)
	m.finish <- end
}

// errNoPlace is the error of a caller that gets no place.
var errNoPlace = errors.New("no place")

func (r *run) place() {
	i, m := r.pick(func(m *modelCaller) bool { return m.want.waits })
	if m == nil {
		return
	}
	var err error
	if r.random.IntN(5) == 0 {
		err = errNoPlace
	}
	r.logf("caller %d gets a place: %v", i, err)
	r.reference.place(m, err)
	m.caller.place <- err
}

func (r *run) cancel() {
	i, m := r.pick(func(m *modelCaller) bool { return !m.want.asks && !m.ended() })
	if m == nil {
		return
	}
	r.logf("caller %d is cancelled", i)
	r.reference.cancel(m)
	m.cancel()
}

func (r *run) get() {
	q := r.question()
	r.logf("get %s", q.Key)
	want, wantOK := r.reference.get(q.Key)
	answer, ok := r.cache.Get(q.Key)
	require.Equal(r, wantOK, ok, "%v", r.log)
	require.Equal(r, want, answer, "%v", r.log)
}

func (r *run) began() {
	q := r.question()
	r.logf("began %s", q.Key)
	r.moments = append(r.moments, moment{r.cache.Now(), q, r.reference.step})
}

func (r *run) put() {
	if len(r.moments) == 0 {
		return
	}
	i := max(0, len(r.moments)-1-r.random.IntN(4))
	g, answer := r.moments[i], r.answer()
	r.moments = slices.Delete(r.moments, i, i+1)
	r.logf("put %s %+v of step %d", g.q.Key, answer, g.began)
	r.reference.put(g.q, g.began, answer)
	r.cache.Put(g.q, g.Moment, answer)
}

func (r *run) barrier() {
	var domains []string
	for _, domain := range []string{"A", "B", "C", "D"} {
		if r.random.IntN(3) == 0 {
			domains = append(domains, domain)
		}
	}
	r.logf("barrier %v", domains)
	r.open[r.reference.beginBarrier(domains)] = r.cache.Barrier(domains...)
}

func (r *run) endBarrier() {
	for _, i := range r.random.Perm(len(r.reference.barriers)) {
		b := r.reference.barriers[i]
		if b.end != 0 && r.random.IntN(10) > 0 {
			continue
		}
		r.logf("end of barrier of step %d", b.began)
		if b.end == 0 {
			b.end = r.reference.step
		}
		r.open[b]() // once more, if it has ended
		return
	}
}

func (r *run) sleep() {
	d := time.Duration(r.random.IntN(4))
	r.logf("sleep %d", d)
	time.Sleep(d)
}

// end ends all asks, after which no caller may wait.
func (r *run) end() {
	for range r.callers {
		for i, m := range r.callers {
			if m.want.waits {
				r.reference.step++
				r.logf("caller %d gets a place", i)
				r.reference.place(m, nil)
				m.caller.place <- nil
				r.check()
			}
			if m.want.asks {
				r.reference.step++
				r.logf("caller %d ends", i)
				r.reference.finish(m, outcome{})
				m.finish <- outcome{}
				r.check()
			}
		}
	}
	_, left := r.pick(func(m *modelCaller) bool { return !m.ended() })
	require.Nil(r, left)
}

package output

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"weak"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/caisson-run/caisson/tool"
)

var (
	// ErrUnknown means that nothing is kept under a reference.
	ErrUnknown = errors.New("unknown reference")
	// ErrRange means that a page starts outside the text, or that its length is negative.
	ErrRange = errors.New("outside of the text")
)

const (
	// DefaultPage is the default length of a page in bytes.
	DefaultPage = 32 << 10
	// EntryBytes is the overhead of an entry, in addition to its text and its reference.
	EntryBytes = 128
)

// Shared bounds the bytes that several stores keep together, such as those of a tenant's sessions. Get one from
// [NewShared]. It is safe for concurrent use.
type Shared struct {
	limit int64

	mu     sync.Mutex // of all stores
	used   int64
	stores map[*texts]struct{}
}

// NewShared returns a bound in bytes, counted as for [Shared.NewStore]. A full one evicts the oldest text of the store
// with the most bytes.
func NewShared(bytes int64) *Shared { return &Shared{limit: bytes, stores: map[*texts]struct{}{}} }

// Tenants holds for each tenant the bound on the bytes that its sessions keep. The zero value is empty. It is safe for
// concurrent use.
type Tenants struct {
	mu       sync.Mutex
	byTenant map[string]weak.Pointer[Shared] // that sessions use
}

// Of returns the bound of a tenant.
func (k *Tenants) Of(tenant string, bytes int64) *Shared {
	k.mu.Lock()
	defer k.mu.Unlock()
	if shared := k.byTenant[tenant].Value(); shared != nil {
		return shared
	}
	shared := NewShared(bytes)
	if k.byTenant == nil {
		k.byTenant = map[string]weak.Pointer[Shared]{}
	}
	k.byTenant[tenant] = weak.Make(shared)
	runtime.AddCleanup(shared, k.forget, tenant)
	return shared
}

// forget forgets a tenant without sessions.
func (k *Tenants) forget(tenant string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byTenant[tenant].Value() == nil {
		delete(k.byTenant, tenant)
	}
}

// Store keeps the whole texts of one session, and evicts the oldest for new ones. It is safe for concurrent use. Its
// texts count until nothing refers to it.
type Store struct{ *texts }

type texts struct {
	limit  int64
	shared *Shared // whose lock guards the fields below
	used   int64
	gone   bool                           // whether anything was evicted
	kept   *simplelru.LRU[string, string] // never asked with Get, so that the least recent is the oldest
}

func sizeOf(reference, text string) int64 {
	return EntryBytes + int64(len(reference)) + int64(len(text))
}

// NewStore returns an empty store with a bound for this store in bytes, which counts texts, references and [EntryBytes]
// for each.
func (s *Shared) NewStore(bytes int64) (*Store, error) {
	of := &texts{limit: min(bytes, s.limit), shared: s}
	var err error
	of.kept, err = simplelru.NewLRU(math.MaxInt, func(reference, text string) {
		of.used -= sizeOf(reference, text)
		s.used -= sizeOf(reference, text)
	})
	if err != nil {
		return nil, err
	}
	store := &Store{of}
	runtime.AddCleanup(store, s.remove, of)
	return store, nil
}

// remove removes a store and its texts, so that their bytes no longer count.
func (s *Shared) remove(of *texts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of.kept.Purge()
	delete(s.stores, of)
}

// makeRoom evicts texts until there is room for as many bytes. The caller must hold s.mu.
func (s *Shared) makeRoom(bytes int64) {
	for s.used+bytes > s.limit {
		var largest *texts
		for of := range s.stores {
			if largest == nil || of.used > largest.used {
				largest = of
			}
		}
		largest.evict()
	}
}

// evict evicts the oldest text. The caller must hold s.shared.mu.
func (s *texts) evict() {
	s.kept.RemoveOldest()
	s.gone = true
	if s.used == 0 {
		delete(s.shared.stores, s)
	}
}

// Keeper returns a function that keeps the parts of one result for one call of [Cut], under references made from
// their names. If the parts do not fit together, it keeps the first ones, so that no part is evicted by
// another of the same result before its mark is read.
func (s *texts) Keeper(reference func(part string) string) Keep {
	left := s.limit
	return func(part, text string) string {
		text, by := validText(text), reference(part)
		size := sizeOf(by, text)
		if size > left || !s.Keep(by, text) {
			return ""
		}
		left -= size
		return by
	}
}

// Keep keeps a text, made valid UTF-8, in place of any with the same reference. It returns false, and changes
// nothing, for a text larger than the store and for an empty reference.
func (s *texts) Keep(reference, text string) bool {
	text = validText(text)
	size := sizeOf(reference, text)
	if reference == "" || size > s.limit {
		return false
	}
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	s.kept.Remove(reference)
	for s.used+size > s.limit {
		s.evict()
	}
	s.shared.makeRoom(size)
	s.shared.stores[s] = struct{}{}
	s.used += size
	s.shared.used += size
	// A substring would keep the whole string in memory.
	s.kept.Add(strings.Clone(reference), strings.Clone(text))
	return true
}

// Page returns at most limit bytes of a text, zero for [DefaultPage], starting at the byte from. A page starts and
// ends between code points: it starts with the next one if from is inside one, and has at least one even
// if that is longer than limit. So consecutive pages, each from where the last one says, are the whole text. A
// page at the end of the text is empty and the last.
//
// It fails with [ErrUnknown] or [ErrRange], worded for a model.
func (s *texts) Page(reference string, from, limit int64) (tool.Page, error) {
	text, err := s.text(reference)
	if err != nil {
		return tool.Page{}, refused(reference, err)
	}
	total := int64(len(text))
	if from < 0 || from > total {
		return tool.Page{},
			refused(reference, fmt.Errorf("%w: it has %d bytes and no page from %d on", ErrRange, total, from))
	}
	if limit < 0 {
		return tool.Page{}, refused(reference, fmt.Errorf("%w: a page cannot have %d bytes", ErrRange, limit))
	}
	if limit == 0 {
		limit = DefaultPage
	}
	begin := int64(runeAfter(text, int(from)))
	end := total
	if limit < total-begin {
		end = int64(runeBefore(text, int(begin+limit)))
	}
	if end == begin {
		end = int64(runeAfter(text, int(min(begin+1, total))))
	}
	page := tool.Page{
		Reference: reference, From: begin, Next: end, Total: total,
		// A substring would keep the whole string in memory.
		Text: strings.Clone(text[begin:end]),
	}
	if end == total {
		page.Next = -1
	}
	return page, nil
}

func (s *texts) text(reference string) (string, error) {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	if text, ok := s.kept.Peek(reference); ok {
		return text, nil
	}
	if s.gone {
		return "", fmt.Errorf("%w: nothing is kept under it in this session, or it was evicted by later results", ErrUnknown)
	}
	return "", fmt.Errorf("%w: nothing is kept under it in this session", ErrUnknown)
}

func refused(reference string, err error) error {
	return fmt.Errorf("reference %q: %w", tool.Shown(reference, 128), err)
}

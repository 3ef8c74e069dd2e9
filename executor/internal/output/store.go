package output

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/caisson-run/caisson/tool"
)

var (
	// ErrUnknown means that nothing is kept by a reference.
	ErrUnknown = errors.New("unknown reference")
	// ErrRange means that a page begins outside of the whole, or that its length is negative.
	ErrRange = errors.New("outside of the text")
)

const (
	// DefaultPage is how long a page is unless told, in bytes.
	DefaultPage = 32 << 10
	// EntryBytes is what each whole counts beside its text and its reference.
	EntryBytes = 128
)

// Store keeps whole texts of one session. What was kept longest ago gives way to what is
// kept. It is safe for concurrent use.
type Store struct {
	most int64

	mu   sync.Mutex
	used int64
	gone bool                           // whether anything has given way
	kept *simplelru.LRU[string, string] // never asked with Get, so that the least recent is the oldest
}

func sizeOf(reference, text string) int64 {
	return EntryBytes + int64(len(reference)) + int64(len(text))
}

// NewStore returns an empty store for so many bytes at the same time: texts, references and
// [EntryBytes] for each.
func NewStore(bytes int64) (*Store, error) {
	s := &Store{most: bytes}
	var err error
	s.kept, err = simplelru.NewLRU(math.MaxInt, func(reference, text string) { s.used -= sizeOf(reference, text) })
	return s, err
}

// Keeper returns the function that keeps the parts of one result, for [Cut], under the
// references that are made for their names. Of parts that have no room together, it keeps the
// first, so that none gives way to another of the same result before its mark is read. It is
// for one call of Cut.
func (s *Store) Keeper(reference func(part string) string) Keep {
	left := s.most
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

// Keep keeps a text, made valid UTF-8, in place of what has the same reference, and reports
// whether it did: what is larger than the store's bound is not kept, nor what has an empty
// reference. The store then is as it was.
func (s *Store) Keep(reference, text string) bool {
	text = validText(text)
	size := sizeOf(reference, text)
	if reference == "" || size > s.most {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept.Remove(reference)
	for s.used+size > s.most {
		s.kept.RemoveOldest()
		s.gone = true
	}
	s.used += size
	// A part of a longer string would hold all of that in memory.
	s.kept.Add(strings.Clone(reference), strings.Clone(text))
	return true
}

// Page returns a piece of a whole: at most so many bytes, zero for [DefaultPage], from this
// byte on. It begins and ends between code points: one that begins inside of one begins with
// the next instead, and one that is too short for the first has it nevertheless. So pages that
// are read one after the other, each from where the last one says, are the whole. One that
// begins at the whole's end is empty and the last.
//
// It fails with [ErrUnknown] or [ErrRange], in words that can be shown to a model.
func (s *Store) Page(reference string, from, most int64) (tool.Page, error) {
	text, err := s.text(reference)
	if err != nil {
		return tool.Page{}, refused(reference, err)
	}
	total := int64(len(text))
	if from < 0 || from > total {
		return tool.Page{}, refused(reference, fmt.Errorf("%w: it has %d bytes and no page from %d on", ErrRange, total, from))
	}
	if most < 0 {
		return tool.Page{}, refused(reference, fmt.Errorf("%w: a page cannot have %d bytes", ErrRange, most))
	}
	if most == 0 {
		most = DefaultPage
	}
	begin := runeStart(text, from)
	end := pageEnd(text, begin, most)
	page := tool.Page{
		Reference: reference, From: begin, Next: end, Total: total,
		// A part of the whole would hold all of it in memory.
		Text: strings.Clone(text[begin:end]),
	}
	if end == total {
		page.Next = -1
	}
	return page, nil
}

func (s *Store) text(reference string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
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

// runeStart returns where the first code point begins that is not before this byte.
func runeStart(text string, from int64) int64 {
	for from < int64(len(text)) && !utf8.RuneStart(text[from]) {
		from++
	}
	return from
}

// pageEnd returns where a page ends that has at least one code point, if there is one.
func pageEnd(text string, begin, most int64) int64 {
	if most >= int64(len(text))-begin {
		return int64(len(text))
	}
	end := begin + most
	for end > begin && !utf8.RuneStart(text[end]) {
		end--
	}
	if end == begin {
		return runeStart(text, begin+1)
	}
	return end
}

package output

import (
	"container/list"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/caisson-run/caisson/tool"
)

const (
	// DefaultBytes is how much a store keeps unless told.
	DefaultBytes = 16 << 20
	// DefaultPage is how long a page is unless told, in bytes.
	DefaultPage = 32 << 10
	// EntryBytes is what each whole counts beside its text and its reference.
	EntryBytes = 128
)

// Options configure a [Store]. The zero value has the defaults.
type Options struct {
	// Bytes is how much is kept at the same time: texts, references and [EntryBytes] for
	// each. Zero stands for [DefaultBytes]; a negative number is an error.
	Bytes int64
}

// Store keeps whole texts of one session. What was kept longest ago gives way to what is
// kept. Its methods can be called at the same time.
type Store struct {
	most int64

	mu          sync.Mutex
	used        int64
	gone        bool       // whether anything has given way
	entries     *list.List // of *entry, the oldest first
	byReference map[string]*list.Element
}

type entry struct{ reference, text string }

func (e *entry) size() int64 { return sizeOf(e.reference, e.text) }

func sizeOf(reference, text string) int64 {
	return EntryBytes + int64(len(reference)) + int64(len(text))
}

// NewStore returns an empty store. A negative bound is an [*Error] with [ErrBytes].
func NewStore(options Options) (*Store, error) {
	if options.Bytes < 0 {
		return nil, &Error{Detail: fmt.Sprint(options.Bytes), Err: ErrBytes}
	}
	if options.Bytes == 0 {
		options.Bytes = DefaultBytes
	}
	return &Store{most: options.Bytes, entries: list.New(), byReference: make(map[string]*list.Element)}, nil
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
	if reference == "" || sizeOf(reference, text) > s.most {
		return false
	}
	// A part of a longer string would hold all of that in memory.
	e := &entry{strings.Clone(reference), strings.Clone(text)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.byReference[reference]; ok {
		s.remove(old)
	}
	for s.used+e.size() > s.most {
		s.remove(s.entries.Front())
		s.gone = true
	}
	s.used += e.size()
	s.byReference[e.reference] = s.entries.PushBack(e)
	return true
}

func (s *Store) remove(element *list.Element) {
	e := s.entries.Remove(element).(*entry)
	delete(s.byReference, e.reference)
	s.used -= e.size()
}

// Page returns a piece of a whole: at most so many bytes, zero for [DefaultPage], from this
// byte on. It begins and ends between code points: one that begins inside of one begins with
// the next instead, and one that is too short for the first has it nevertheless. So pages that
// are read one after the other, each from where the last one says, are the whole. One that
// begins at the whole's end is empty and the last.
//
// Failures are an [*Error] with [ErrUnknown] or [ErrRange].
func (s *Store) Page(reference string, from, most int64) (tool.Page, error) {
	text, err := s.text(reference)
	if err != nil {
		return tool.Page{}, err
	}
	total := int64(len(text))
	if from < 0 || from > total {
		return tool.Page{}, &Error{reference, fmt.Sprintf("it has %d bytes and no page from %d on", total, from), ErrRange}
	}
	if most < 0 {
		return tool.Page{}, &Error{reference, fmt.Sprintf("a page cannot have %d bytes", most), ErrRange}
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
	if element, ok := s.byReference[reference]; ok {
		return element.Value.(*entry).text, nil
	}
	detail := "nothing was kept by it in this session"
	if s.gone {
		detail = "nothing was kept by it in this session, or it has given way to later results"
	}
	return "", &Error{reference, detail, ErrUnknown}
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

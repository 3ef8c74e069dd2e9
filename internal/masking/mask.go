// Package masking replaces values in texts, in five forms: as they are, with percent escapes, with backslash escapes,
// in Base64 and in hexadecimal. The documentation of package secrets describes them.
package masking

import (
	"bytes"
	"cmp"
	"slices"
)

const (
	// maxRounds limits how often a text is masked again because a placeholder for one value completed another value.
	maxRounds = 4
	// Stretch is the number of bytes of a text that are read at once. The time is checked after each stretch.
	Stretch = 32 << 10
)

// Value is what is to be replaced, and the placeholder that replaces it.
type Value struct{ Text, Placeholder string }

// Masker finds values in texts. It is immutable and safe for concurrent use.
type Masker struct {
	forms   []form
	longest int
}

// New returns a masker for values, of which each is replaced by the first placeholder that it has. No placeholder may
// hold a value: see [Masker.Finds].
func New(values []Value) *Masker {
	m := &Masker{forms: newForms()}
	seen := map[string]bool{}
	for _, v := range values {
		if seen[v.Text] {
			continue
		}
		seen[v.Text] = true
		for i := range m.forms {
			m.forms[i].add(v.Placeholder, v.Text)
		}
		m.longest = max(m.longest, longestForm(len(v.Text)))
	}
	return m
}

// Longest returns the length in bytes of the longest form of a value: hexadecimal with [MaxBetween] separators between
// any two digits.
func (m *Masker) Longest() int { return m.longest }

// Finds reports whether a text holds a value.
func (m *Masker) Finds(text string) bool { return len(newSearch(m, Never).find([]byte(text))) > 0 }

// Mask returns the masked form of the first n bytes of text: text itself if there is nothing to mask. A value that
// begins in them is replaced whole. Soon after expired reports true, Mask returns anything.
func (m *Masker) Mask(text []byte, n int, expired func() bool) []byte {
	return newSearch(m, expired).mask(text, n)
}

// Never is for masking that does not expire.
func Never() bool { return false }

// span is a part of a text that holds a secret, and its placeholder.
type span struct {
	from, to int
	shown    string
}

// search masks one text. Soon after it has expired, it stops finding anything.
type search struct {
	*Masker
	window  window
	expired func() bool
	work    int // in bytes, since the time was checked
	ended   bool
}

func newSearch(m *Masker, expired func() bool) *search { return &search{Masker: m, expired: expired} }

// over reports whether the search has expired. It adds to the work done, and checks the time after each stretch of it.
func (s *search) over(work int) bool {
	if s.work += work; s.work >= Stretch && !s.ended {
		s.work, s.ended = 0, s.expired()
	}
	return s.ended
}

// mask returns the masked form of the first n bytes of text. If the search has expired, the result is unusable.
func (s *search) mask(text []byte, n int) []byte {
	shown := ""
	for range maxRounds {
		found := s.find(text)
		if len(found) == 0 || s.ended {
			return text[:n:n]
		}
		shown = found[0].shown
		text = s.replace(text, n, found)
		n = len(text)
	}
	return []byte(shown)
}

// replace replaces the spans in the first n bytes of text. If there are none, it returns a subslice of text.
func (s *search) replace(text []byte, n int, found []span) []byte {
	if found[0].from >= n {
		return text[:n:n]
	}
	out := make([]byte, 0, n)
	done := 0
	for _, f := range found {
		if f.from >= n {
			break
		}
		out = append(s.copied(out, text[done:f.from]), f.shown...)
		done = f.to
	}
	return s.copied(out, text[done:max(done, n)])
}

// copied appends text to out, until the search expires.
func (s *search) copied(out, text []byte) []byte {
	for len(text) > Stretch && !s.over(Stretch) {
		out, text = append(out, text[:Stretch]...), text[Stretch:]
	}
	if s.over(len(text)) {
		return out
	}
	return append(out, text...)
}

// find returns the spans of text that hold a secret, in order and without overlaps.
func (s *search) find(text []byte) []span {
	var found []span
	for i := range s.forms {
		found = s.merge(found, s.findForm(&s.forms[i], text))
	}
	return found
}

func (s *search) findForm(f *form, text []byte) []span {
	if !f.occursIn(text) {
		return nil
	}
	w := &s.window
	w.reset(min(len(text), Stretch+f.longest))
	var found []span
	for at := 0; at < len(text) && !s.over(Stretch); {
		at = f.read(w, text, at, min(len(text), at+Stretch))
		fresh := s.findRead(f, text)
		slices.SortFunc(fresh, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
		for _, one := range fresh {
			found = join(found, one)
		}
		w.keep(f.longest) // the next stretch may complete a needle
	}
	return found
}

// findRead finds needles that end in the last stretch read, or right before it: such a needle may
// extend to the next character.
func (s *search) findRead(f *form, text []byte) []span {
	w := &s.window
	var found []span
	for _, n := range f.needles {
		from := max(0, w.kept-len(n.text))
		if s.over(len(w.bytes)) {
			break
		}
		for {
			i := bytes.Index(w.bytes[from:], n.text)
			if i < 0 {
				break
			}
			first, last := from+i, from+i+len(n.text)-1
			from = last + 1
			if n.sharesFirst && first > 0 && w.bytes[first-1] != gap {
				first--
			}
			if n.sharesLast && last+1 < len(w.bytes) && w.bytes[last+1] != gap {
				last++
			}
			end := w.starts[last]
			found = append(found, span{w.starts[first], end + f.width(text[end:]), n.shown})
		}
	}
	return found
}

// merge merges two ordered lists of spans.
func (s *search) merge(a, b []span) []span {
	if len(a) == 0 || len(b) == 0 {
		return append(a, b...)
	}
	merged := make([]span, 0, len(a)+len(b))
	for len(a)+len(b) > 0 && !s.over(64) {
		if len(b) == 0 || len(a) > 0 && a[0].from <= b[0].from {
			merged, a = join(merged, a[0]), a[1:]
		} else {
			merged, b = join(merged, b[0]), b[1:]
		}
	}
	return merged
}

// join appends a span that begins or ends after all others. It merges spans that overlap into one,
// with the placeholder of the one that begins first.
func join(spans []span, s span) []span {
	for n := len(spans); n > 0 && spans[n-1].to > s.from; n-- {
		last := spans[n-1]
		if last.from <= s.from {
			s.from, s.shown = last.from, last.shown
		}
		s.to = max(s.to, last.to)
		spans = spans[:n-1]
	}
	return append(spans, s)
}

package secrets

import (
	"bytes"
	"cmp"
	"slices"
)

const (
	// maxRounds limits how often a text is masked again because a placeholder for one secret completed another secret.
	maxRounds = 4
	// stretch is the number of bytes of a text that are read at once. The time is checked after each stretch.
	stretch = 32 << 10
)

// masker finds values in texts. It is immutable.
type masker struct {
	forms   []form
	longest int
}

// newMasker returns a masker, or nil if there is nothing to mask.
func newMasker(secrets []*binding) (*masker, error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	m := &masker{forms: newForms()}
	seen := map[string]bool{}
	for _, b := range secrets {
		if seen[b.value] {
			continue
		}
		seen[b.value] = true
		for i := range m.forms {
			m.forms[i].add(placeholder(b.name), b.value)
		}
		m.longest = max(m.longest, longestForm(len(b.value)))
	}
	for _, b := range secrets {
		if s := newSearch(m, never); len(s.find([]byte(placeholder(b.name)))) > 0 {
			return nil,
				&Error{Name: b.name, Kind: ErrValue,
					Message: "a value is part of the placeholder that replaces it; use another value or name"}
		}
	}
	return m, nil
}

func placeholder(name string) string { return "[secret " + name + "]" }

// span is a part of a text that holds a secret, and its placeholder.
type span struct {
	from, to int
	shown    string
}

// search masks one text. Soon after it has expired, it stops finding anything.
type search struct {
	*masker
	window  window
	expired func() bool
	work    int // in bytes, since the time was checked
	ended   bool
}

func newSearch(m *masker, expired func() bool) *search { return &search{masker: m, expired: expired} }

func never() bool { return false }

// over reports whether the search has expired. It adds to the work done, and checks the time after each stretch of it.
func (s *search) over(work int) bool {
	if s.work += work; s.work >= stretch && !s.ended {
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
	for len(text) > stretch && !s.over(stretch) {
		out, text = append(out, text[:stretch]...), text[stretch:]
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
	w.reset(min(len(text), stretch+f.longest))
	var found []span
	for at := 0; at < len(text) && !s.over(stretch); {
		at = f.read(w, text, at, min(len(text), at+stretch))
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

package secrets

import (
	"bytes"
	"slices"
	"strings"
)

// masker finds values in texts. It does not change.
type masker struct {
	raw       []needle // in lower case
	encodings []encoding
	escapes   escapes // the kinds that are decoded
	longest   int
}

// needle is a text to look for, and the secret whose value it gives away.
type needle struct {
	name string
	text []byte
}

// search is one masking. Once its time is over it finds nothing more, soon.
type search struct {
	*masker
	over func() bool
}

func never() bool { return false }

// span is a part of a text that gives a secret away.
type span struct {
	from, to int
	name     string
}

// maxRounds bounds how often a text is masked again because what stands in for one secret
// completed another.
const maxRounds = 4

// newMasker returns nil where there is nothing to mask.
func newMasker(secrets []*binding) (*masker, error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	m := &masker{encodings: []encoding{{alphabet: base64}, {alphabet: base32}, {alphabet: hexDigits}}}
	m.escapes = every
	for _, b := range secrets {
		if strings.Contains(b.value, " ") {
			m.escapes |= plus // which is a space only where a value has one
		}
	}
	seen := map[string]bool{}
	for _, b := range secrets {
		if !seen[b.value] {
			seen[b.value] = true
			m.add(b.name, b.value)
		}
	}
	for _, b := range secrets {
		if len(search{m, never}.find([]byte(placeholder(b.name)))) > 0 {
			return nil, &Error{Op: "read", Name: b.name, Kind: ErrValue, Message: "a value is part of what is shown in its place"}
		}
	}
	return m, nil
}

func (m *masker) add(name, value string) {
	for _, variant := range variants(value, m.escapes) {
		m.raw = append(m.raw, needle{name, lower(variant)})
	}
	for i := range m.encodings {
		m.encodings[i].add(name, value)
	}
	m.longest = max(m.longest, maxUnit*len(value))
}

// placeholder is what stands for a value.
func placeholder(name string) string { return "[secret " + name + "]" }

// lower returns a copy of text in which ASCII letters are in lower case. Servers change the
// case of header names, hosts and words that were searched for.
func lower(text []byte) []byte {
	out := make([]byte, len(text))
	for i, c := range text {
		if c-'A' < 26 {
			c |= 0x20
		}
		out[i] = c
	}
	return out
}

// mask returns what becomes of the first n bytes of text: nothing of use once the time was
// over.
func (s search) mask(text []byte, n int) []byte {
	found := s.find(text)
	masked := replace(text, n, found)
	for round := 1; len(found) > 0; round++ {
		if round == maxRounds {
			return []byte(placeholder(found[0].name))
		}
		found = s.find(masked)
		masked = replace(masked, len(masked), found)
	}
	return masked
}

// replace puts placeholders for the spans into the first n bytes of text. It returns a part
// of text itself where there are none.
func replace(text []byte, n int, found []span) []byte {
	var out []byte
	done := 0
	for _, s := range found {
		if s.from >= n {
			break
		}
		out = append(out, text[done:s.from]...)
		out = append(out, placeholder(s.name)...)
		done = s.to
	}
	if done == 0 {
		return text[:n:n]
	}
	return append(out, text[done:max(done, n)]...)
}

// find returns the spans of text that give a secret away, in order, none of which overlap.
func (s search) find(text []byte) []span {
	found := s.findPlain(text)
	present := s.escapes & occurring(text)
	if present != 0 {
		present |= s.escapes & plus // which other escapes may hide
	}
	for _, chain := range newChains(present) {
		found = append(found, chain.find(text, s)...)
	}
	return merge(found)
}

// findPlain finds what is not escaped.
func (s search) findPlain(text []byte) []span {
	var found []span
	folded := lower(text)
	for _, n := range s.raw {
		for from := 0; !s.over(); {
			i := bytes.Index(folded[from:], n.text)
			if i < 0 {
				break
			}
			found = append(found, span{from + i, from + i + len(n.text), n.name})
			from += i + len(n.text)
		}
	}
	// Every character of the other alphabets is one of the first.
	least := s.encodings[0].least
	for _, e := range s.encodings {
		least = min(least, e.least)
	}
	s.encodings[0].runs(text, least, func(from, to int) {
		for i := range s.encodings {
			if s.over() {
				return
			}
			found = append(found, s.encodings[i].find(text[from:to], from)...)
		}
	})
	return merge(found)
}

// merge sorts spans and joins those that overlap, under the name of the one that begins first.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	joined := spans[:0]
	for _, s := range spans {
		if last := len(joined) - 1; last >= 0 && s.from < joined[last].to {
			joined[last].to = max(joined[last].to, s.to)
		} else {
			joined = append(joined, s)
		}
	}
	return joined
}

package kernels

import "strconv"

// The patterns that each line of the log is searched for.
var patterns = []string{
	`[0-9]+-[0-9]+-[0-9]+T[0-9:]+`,
	`(GET|POST|PUT|DELETE) (/[a-z]+)*/[0-9]+`,
	`[a-z][a-z.]*@[a-z]+(\.[a-z]+)+`,
	`(a|ab|abc)*(d|e)?=.*ms`,
}

// Regex finds all matches of the patterns in a log of size lines.
func Regex(size int32) uint64 {
	log := writeLog(size)
	checksum := uint64(checksumSeed)
	for _, pattern := range patterns {
		m := newMatcher(compileRegex(pattern))
		for start := 0; start < len(log); {
			end := start
			for log[end] != '\n' {
				end++
			}
			checksum = m.all(checksum, log[start:end])
			start = end + 1
		}
	}
	return checksum
}

// writeLog makes lines of which each pattern matches some.
func writeLog(size int32) []byte {
	source := random(10)
	methods := []string{"GET", "POST", "PUT", "DELETE", "PATCH"}
	paths := []string{"/", "/users/", "/users/orders/", "/static"}
	names := []string{"ann", "bob.b", "cab", "dee.e.f"}
	keys := []string{"abd", "abcabe", "took", "a"}
	var text []byte
	number := func(below uint32) { text = strconv.AppendUint(text, uint64(source.next()%below), 10) }
	pick := func(from []string) { text = append(text, from[source.next()%uint32(len(from))]...) }
	for range size {
		text = append(text, "2026-"...)
		number(13)
		text = append(text, '-')
		number(32)
		text = append(text, 'T')
		number(24)
		text = append(text, ':')
		number(60)
		text = append(text, ' ')
		pick(methods)
		text = append(text, ' ')
		pick(paths)
		number(10000)
		text = append(text, ' ')
		pick(names)
		text = append(text, "@mail."...)
		pick(names)
		text = append(text, ' ')
		pick(keys)
		text = append(text, '=')
		number(1000)
		text = append(text, "ms\n"...)
	}
	return text
}

// matcher runs a pattern over lines. It is in a set of states at a time, so it never goes
// back in a line.
type matcher struct {
	pattern       regex
	current, next stateSet
}

// stateSet holds states in the order in which they were added: the earlier the match
// began, the earlier.
type stateSet struct {
	states []thread
	place  []uint32 // by state: where states has it, if it has
}

type thread struct{ state, start uint32 }

type span struct{ start, end int }

func newMatcher(pattern regex) *matcher {
	set := func() stateSet {
		return stateSet{states: make([]thread, 0, len(pattern.program)), place: make([]uint32, len(pattern.program))}
	}
	return &matcher{pattern: pattern, current: set(), next: set()}
}

func (s *stateSet) has(state uint32) bool {
	place := s.place[state]
	return int(place) < len(s.states) && s.states[place].state == state
}

// all folds the matches in a line into a checksum.
func (m *matcher) all(checksum uint64, line []byte) uint64 {
	for at := 0; at <= len(line); {
		found, ok := m.first(line, at)
		if !ok {
			break
		}
		checksum = mix(checksum, uint64(found.start)<<32|uint64(found.end))
		at = max(found.end, at+1)
	}
	return checksum
}

// first returns the leftmost match from a place on, and of those the longest.
func (m *matcher) first(line []byte, from int) (found span, ok bool) {
	m.current.states = m.current.states[:0]
	for at := from; ; at++ {
		if !ok {
			m.follow(&m.current, 0, uint32(at))
		}
		if len(m.current.states) == 0 {
			return found, ok
		}
		m.next.states = m.next.states[:0]
		for _, t := range m.current.states {
			if ok && int(t.start) > found.start {
				break
			}
			i := &m.pattern.program[t.state]
			if i.op == opMatch {
				found, ok = span{int(t.start), at}, true
			} else if at < len(line) && m.accepts(i, line[at]) {
				m.follow(&m.next, t.state+1, t.start)
			}
		}
		if at == len(line) {
			return found, ok
		}
		m.current, m.next = m.next, m.current
	}
}

func (m *matcher) accepts(i *regexInstruction, b byte) bool {
	switch i.op {
	case opByte:
		return i.first == int32(b)
	case opClass:
		return m.pattern.classes[i.first][b>>6]>>(b&63)&1 != 0
	}
	return i.op == opAny
}

// follow adds a state, or those that it leads to without reading.
func (m *matcher) follow(set *stateSet, state, start uint32) {
	if set.has(state) {
		return
	}
	set.place[state] = uint32(len(set.states))
	set.states = append(set.states, thread{state, start})
	i := &m.pattern.program[state]
	switch i.op {
	case opForward:
		m.follow(set, state+uint32(i.first), start)
	case opSplit:
		m.follow(set, state+uint32(i.first), start)
		m.follow(set, state+uint32(i.second), start)
	}
}

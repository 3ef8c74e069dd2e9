// Package words finds the words of a text for search, in any language.
//
// A word is a run of letters and digits, folded: case, accents of Latin and Greek letters and the width of
// characters make no difference. Writing without spaces, such as Chinese, Japanese and Thai, has no words to
// see. There, each character and each pair of neighbours counts as a word, and a query is the pairs in it.
package words

import "unicode/utf8"

// MaxWord is the maximum length of a word in bytes, folded. Longer words are cut.
const MaxWord = 48

// Scanner finds words. The zero value is ready. It caches the properties of characters, so it is
// quicker if it is reused, and not safe for concurrent use.
type Scanner struct {
	// Filter, if set, has the words that Each is for. Other words count, but Each leaves most of them out.
	Filter *Filter

	characters
	visit   func(word []byte, hash uint32)
	isQuery bool

	word   [MaxWord]byte
	length int // bytes of word
	full   bool
	hash   uint32

	pair         [2 * utf8.UTFMax]byte // the previous character of a run without spaces, and this one
	previous     int                   // bytes of the previous one; 0 at the start of a run
	previousHash uint32
	isAlone      bool // the run has had one character
	count        int
}

// Filter is words to look for. A few other words pass, too.
type Filter struct {
	bits [1 << 10]uint64
}

// Add adds a word to look for.
func (f *Filter) Add(word []byte) {
	hash := Hash(word)
	f.bits[hash>>6%uint32(len(f.bits))] |= 1 << (hash % 64)
}

func (f *Filter) passes(hash uint32) bool {
	return f == nil || f.bits[hash>>6%uint32(len(f.bits))]>>(hash%64)&1 != 0
}

// Hash is FNV-1a.
func Hash(word []byte) uint32 {
	hash := uint32(offset)
	for _, c := range word {
		hash = (hash ^ uint32(c)) * prime
	}
	return hash
}

const (
	offset = 2166136261
	prime  = 16777619
)

// Each calls visit with each word of a text, and its [Hash]. Visit must not keep the word. The result is the
// length of the text: its words, and its characters where there are no spaces.
func (s *Scanner) Each(text []byte, visit func(word []byte, hash uint32)) int {
	s.isQuery = false
	return s.scan(text, visit)
}

// Query returns the words to look for, each once, in their order.
func (s *Scanner) Query(text string) []string {
	filter := s.Filter
	s.isQuery, s.Filter = true, nil
	defer func() { s.Filter = filter }()
	var found []string
	seen := map[string]bool{}
	s.scan([]byte(text), func(word []byte, _ uint32) {
		if !seen[string(word)] {
			seen[string(word)] = true
			found = append(found, string(word))
		}
	})
	return found
}

func (s *Scanner) scan(text []byte, visit func(word []byte, hash uint32)) int {
	s.visit, s.count = visit, 0
	s.startWord()
	for i := 0; i < len(text); {
		first := foldedASCII[text[i]]
		if first == between {
			if s.length > 0 || s.full {
				s.endWord()
			}
			if s.previous > 0 {
				s.endRun()
			}
			i++
			continue
		}
		if first == beyond {
			if s.length == 0 && s.previous > 0 {
				i = s.run(text, i)
			} else {
				i = s.other(text, i)
			}
			continue
		}
		// Nearly all texts are mostly ASCII, so nothing is called before a word is known to be wanted.
		if s.previous > 0 {
			s.endRun()
		}
		hash := (uint32(offset) ^ uint32(first)) * prime
		end := i + 1
		after := byte(between)
		for _, c := range text[end:] {
			if after = foldedASCII[c]; after <= beyond {
				break
			}
			hash = (hash ^ uint32(after)) * prime
			end++
		}
		if s.length > 0 || s.full || end-i > MaxWord || after == beyond {
			s.part(text[i:end])
		} else {
			s.count++
			if s.Filter.passes(hash) {
				s.ascii(text[i:end], hash)
			}
		}
		i = end
	}
	s.endWord()
	s.endRun()
	return s.count
}

// Values of foldedASCII for bytes that are neither letters nor digits.
const (
	between = 0 // of a separator
	beyond  = 1 // of a byte of another character
)

var foldedASCII = func() (table [256]byte) {
	for c := range len(table) {
		switch {
		case c >= utf8.RuneSelf:
			table[c] = beyond
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			table[c] = byte(c)
		case c >= 'A' && c <= 'Z':
			table[c] = byte(c) + 'a' - 'A'
		}
	}
	return table
}()

// ascii handles a word that is wanted.
func (s *Scanner) ascii(text []byte, hash uint32) {
	for i, c := range text {
		s.word[i] = foldedASCII[c]
	}
	s.visit(s.word[:len(text)], hash)
}

// part adds ASCII letters and digits to a word that also has other characters, or is too long.
func (s *Scanner) part(text []byte) {
	for _, c := range text {
		s.add([]byte{foldedASCII[c]})
	}
}

// run handles characters of three bytes that continue a run of writing without spaces, up to the first special one,
// and returns the index after them. It handles at least one character.
func (s *Scanner) run(text []byte, start int) int {
	i := start
	for ; i+5 < len(text); i += 3 {
		a, b, c := text[i], text[i+1], text[i+2]
		if a < 0xe1 || a > 0xec || b&0xc0 != 0x80 || c&0xc0 != 0x80 ||
			text[i+3] == 0xe3 && text[i+4] == 0x82 && text[i+5] >= 0x99 {
			break
		}
		if s.kinds[rune(a&0xf)<<12|rune(b&0x3f)<<6|rune(c&0x3f)] != character {
			break
		}
		hash := (uint32(offset) ^ uint32(a)) * prime
		hash = (hash ^ uint32(b)) * prime
		hash = (hash ^ uint32(c)) * prime
		pair := (s.previousHash ^ uint32(a)) * prime
		pair = (pair ^ uint32(b)) * prime
		pair = (pair ^ uint32(c)) * prime
		if s.count++; !s.isQuery && s.Filter.passes(hash) {
			s.visit(text[i:i+3], hash)
		}
		if s.Filter.passes(pair) {
			end := s.previous + copy(s.pair[s.previous:], text[i:i+3])
			s.visit(s.pair[:end], pair)
		}
		s.pair[0], s.pair[1], s.pair[2] = a, b, c
		s.previous, s.previousHash, s.isAlone = 3, hash, false
	}
	if i == start {
		return s.other(text, i)
	}
	return i
}

// other handles any character.
func (s *Scanner) other(text []byte, i int) int {
	r, size := utf8.DecodeRune(text[i:])
	i += size
	switch kind := s.kindOf(r); kind {
	case letter:
		s.endRun()
		s.add(text[i-size : i])
	case foldedLetter:
		s.endRun()
		s.add([]byte(s.folded[r]))
	case mark:
	case character, foldedCharacter:
		s.endWord()
		if voiced, ok := voice(r, text[i:]); ok {
			r, i = voiced, i+voiceSize
			kind = s.kindOf(r)
		}
		if kind == foldedCharacter {
			s.character([]byte(s.folded[r]))
		} else {
			var buffer [utf8.UTFMax]byte
			s.character(buffer[:utf8.EncodeRune(buffer[:], r)])
		}
	default:
		s.endWord()
		s.endRun()
	}
	return i
}

func (s *Scanner) startWord() { s.length, s.hash, s.full = 0, offset, false }

// add adds folded characters to the word.
func (s *Scanner) add(text []byte) {
	if s.full = s.full || s.length+len(text) > MaxWord; s.full {
		return
	}
	for _, c := range text {
		s.hash = (s.hash ^ uint32(c)) * prime
	}
	s.length += copy(s.word[s.length:], text)
}

func (s *Scanner) endWord() {
	if s.length > 0 {
		if s.count++; s.Filter.passes(s.hash) {
			s.visit(s.word[:s.length], s.hash)
		}
	}
	s.startWord()
}

// character handles one of writing without spaces.
func (s *Scanner) character(text []byte) {
	text = text[:min(len(text), utf8.UTFMax)]
	hash := Hash(text)
	if s.count++; !s.isQuery && s.Filter.passes(hash) {
		s.visit(text, hash)
	}
	s.isAlone = s.previous == 0
	end := s.previous + copy(s.pair[s.previous:], text)
	if pair := Hash(s.pair[:end]); !s.isAlone && s.Filter.passes(pair) {
		s.visit(s.pair[:end], pair)
	}
	s.previous, s.previousHash = copy(s.pair[:], s.pair[s.previous:end]), hash
}

func (s *Scanner) endRun() {
	if s.isQuery && s.isAlone && s.previous > 0 {
		s.visit(s.pair[:s.previous], Hash(s.pair[:s.previous]))
	}
	s.previous, s.isAlone = 0, false
}

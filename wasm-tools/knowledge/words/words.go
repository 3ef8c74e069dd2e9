// Package words finds the words of a text for search, in any language.
//
// A word is a run of letters and digits, folded: case, accents of Latin and Greek letters and the width of
// characters make no difference. Writing without spaces, such as Chinese, Japanese and Thai, has no words to
// see. There, each character and each pair of neighbours counts as a word, and a query is the pairs in it.
package words

import "unicode/utf8"

// MaxWord is the length of a word in bytes, folded. What is longer is cut.
const MaxWord = 48

// Scanner finds words. The zero value is ready. It keeps what it has learned of characters, so it is
// quicker if it is reused, and not safe for concurrent use.
type Scanner struct {
	characters
	visit   func(word []byte, hash uint32)
	isQuery bool

	word   [MaxWord]byte
	length int // bytes of word
	full   bool
	hash   uint32

	pair     [2 * utf8.UTFMax]byte // the previous character of a run without spaces, and this one
	previous int                   // bytes of the previous one; 0 at the start of a run
	isAlone  bool                  // the run has had one character
	count    int
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
	s.isQuery = true
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
		if c := text[i]; c < utf8.RuneSelf {
			if i = s.ascii(text, i); i < len(text) && text[i] >= utf8.RuneSelf {
				continue
			}
			s.endWord()
			s.endRun()
			continue
		}
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
	}
	s.endWord()
	s.endRun()
	return s.count
}

// ascii adds what ASCII letters and digits there are to the word, and returns the index of what follows. One
// separator is passed over.
func (s *Scanner) ascii(text []byte, i int) int {
	if s.previous > 0 {
		s.endRun()
	}
	length, hash := s.length, s.hash
	for ; i < len(text); i++ {
		c := text[i]
		if c >= utf8.RuneSelf {
			break
		}
		f := asciiLetters[c]
		if f == 0 {
			s.length, s.hash = length, hash
			s.endWord()
			return i + 1
		}
		if length < MaxWord && !s.full {
			s.word[length] = f
			length++
			hash = (hash ^ uint32(f)) * prime
		}
	}
	s.length, s.hash = length, hash
	return i
}

// asciiLetters are the folded letters and digits.
var asciiLetters = func() (table [utf8.RuneSelf]byte) {
	for c := range byte(utf8.RuneSelf) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			table[c] = c
		case c >= 'A' && c <= 'Z':
			table[c] = c + 'a' - 'A'
		}
	}
	return table
}()

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
		s.count++
		s.visit(s.word[:s.length], s.hash)
		s.startWord()
	}
}

// character handles one of writing without spaces.
func (s *Scanner) character(text []byte) {
	text = text[:min(len(text), utf8.UTFMax)]
	s.count++
	if !s.isQuery {
		s.visit(text, Hash(text))
	}
	s.isAlone = s.previous == 0
	end := s.previous + copy(s.pair[s.previous:], text)
	if !s.isAlone {
		s.visit(s.pair[:end], Hash(s.pair[:end]))
	}
	s.previous = copy(s.pair[:], s.pair[s.previous:end])
}

func (s *Scanner) endRun() {
	if s.isQuery && s.isAlone && s.previous > 0 {
		s.visit(s.pair[:s.previous], Hash(s.pair[:s.previous]))
	}
	s.previous, s.isAlone = 0, false
}

package secrets

// alphabet is an encoding of bytes as characters of a few bits each.
type alphabet struct {
	bits   int
	values *[256]byte // of each character, noSymbol or lineBreak
}

const (
	noSymbol  = 0xff
	lineBreak = 0xfe // stands between characters and means nothing
)

// The encodings in which values are found, in each of their variants.
var (
	hexDigits = alphabet{4, symbols("0123456789abcdef", "0123456789ABCDEF")}
	base32    = alphabet{5, symbols("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "abcdefghijklmnopqrstuvwxyz234567")}
	base64    = alphabet{6, symbols("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")}
)

func symbols(variants ...string) *[256]byte {
	var values [256]byte
	for i := range values {
		values[i] = noSymbol
	}
	values['\n'], values['\r'] = lineBreak, lineBreak
	for _, variant := range variants {
		for i := range len(variant) {
			values[variant[i]] = byte(i)
		}
	}
	return &values
}

// period returns after how many bytes the encoding is aligned with its characters again.
func (a alphabet) period() int {
	for n := 1; ; n++ {
		if 8*n%a.bits == 0 {
			return n
		}
	}
}

// runs yields the stretches of text, each as long as can be, that hold nothing but
// characters of the alphabet and line breaks, and that are least or more bytes long.
func (a alphabet) runs(text []byte, least int, yield func(from, to int)) {
	for from := 0; from+least <= len(text); {
		// Seen from behind, a character that does not belong rules out all before it.
		i := from + least - 1
		for i >= from && a.values[text[i]] != noSymbol {
			i--
		}
		if i >= from {
			from = i + 1
			continue
		}
		to := from + least
		for to < len(text) && a.values[text[to]] != noSymbol {
			to++
		}
		yield(from, to)
		from = to + 1
	}
}

// read returns the values of the characters in a run.
func (a alphabet) read(run []byte) []byte {
	read := make([]byte, 0, len(run))
	for _, c := range run {
		if value := a.values[c]; value < lineBreak {
			read = append(read, value)
		}
	}
	return read
}

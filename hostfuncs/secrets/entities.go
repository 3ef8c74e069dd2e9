package secrets

import (
	"bytes"
	"unicode/utf8"
)

const (
	maxEntityName   = 8
	maxEntityDigits = 8
)

// entityUnit reads a character reference of HTML. Those by number may lack their semicolon,
// as browsers read them.
func entityUnit(out, text []byte) ([]byte, int) {
	if len(text) > 2 && text[1] == '#' {
		return numberUnit(out, text)
	}
	end := bytes.IndexByte(text[:min(len(text), 2+maxEntityName)], ';')
	if end < 0 {
		return out, 0
	}
	c := entityByte(string(text[1:end]))
	if c == 0 {
		return out, 0
	}
	return append(out, c), end + 1
}

func numberUnit(out, text []byte) ([]byte, int) {
	start, base := 2, uint32(10)
	if text[2] == 'x' || text[2] == 'X' {
		start, base = 3, 16
	}
	value, digits := number(text[start:min(len(text), start+maxEntityDigits)], base)
	if digits == 0 || value > utf8.MaxRune {
		return out, 0
	}
	end := start + digits
	if end < len(text) && text[end] == ';' {
		end++
	}
	return utf8.AppendRune(out, rune(value)), end
}

// entityByte returns the printable ASCII character that HTML has a name for, or 0.
func entityByte(name string) byte {
	switch name {
	case "amp", "AMP":
		return '&'
	case "lt", "LT":
		return '<'
	case "gt", "GT":
		return '>'
	case "quot", "QUOT":
		return '"'
	case "apos":
		return '\''
	case "excl":
		return '!'
	case "num":
		return '#'
	case "dollar":
		return '$'
	case "percnt":
		return '%'
	case "lpar":
		return '('
	case "rpar":
		return ')'
	case "ast", "midast":
		return '*'
	case "plus":
		return '+'
	case "comma":
		return ','
	case "period":
		return '.'
	case "sol":
		return '/'
	case "colon":
		return ':'
	case "semi":
		return ';'
	case "equals":
		return '='
	case "quest":
		return '?'
	case "commat":
		return '@'
	case "lsqb", "lbrack":
		return '['
	case "bsol":
		return '\\'
	case "rsqb", "rbrack":
		return ']'
	case "Hat":
		return '^'
	case "lowbar", "UnderBar":
		return '_'
	case "grave":
		return '`'
	case "lcub", "lbrace":
		return '{'
	case "verbar", "vert":
		return '|'
	case "rcub", "rbrace":
		return '}'
	case "Tab":
		return '\t'
	case "NewLine":
		return '\n'
	default:
		return 0
	}
}

package ledger

import (
	"strconv"
	"strings"
)

// The index of words has terms. Each begins with the id of a tenant, so that a search passes through the calls of one
// tenant. Besides the words of a call, there are terms for the values in its columns, so that a search for words and
// values passes over no call.

// wordTerm returns the term for a word.
func wordTerm(tenant int64, word string) string { return strconv.FormatInt(tenant, 10) + "x" + word }

// valueTerm returns the term for a value in a column.
func valueTerm(tenant int64, column string, value int64) string {
	return strconv.FormatInt(tenant, 10) + "k" + column + strconv.FormatUint(uint64(value), 10)
}

// termsOf returns the terms of a call, with spaces between them. values are those in its columns by name; nil has no
// term.
func (l *Ledger) termsOf(tenant int64, e *Entry, values map[string]any) string {
	if l.options.NoWords {
		return ""
	}
	var terms []string
	for _, word := range wordsOf(e) {
		terms = append(terms, wordTerm(tenant, word))
	}
	for column, value := range values {
		if value, ok := value.(int64); ok {
			terms = append(terms, valueTerm(tenant, column, value))
		}
	}
	if len(e.Record.Denials) > 0 {
		terms = append(terms, valueTerm(tenant, "denied", 1))
	}
	return strings.Join(terms, " ")
}

// matching returns the expression for the index of words that finds the calls of a tenant with all words, and with the
// values of the filter: in the language of SQLite or PostgreSQL.
func (s *search) matching(tenant int64) string {
	quote, and := `"`, " "
	if s.ledger.database.Only("", "postgres") != "" {
		quote, and = "'", " & "
	}
	var all []string
	for _, word := range s.words {
		all = append(all, quote+wordTerm(tenant, word)+quote)
	}
	for _, c := range s.equal {
		all = append(all, quote+valueTerm(tenant, c.column, c.value)+quote)
	}
	return strings.Join(all, and)
}

package lint

import (
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/dialects"
)

// Name says what the rules have against the name of a tool. Names are never adapted, since
// calls come back under the name that was offered.
func Name(name string, rules Rules) []dialects.Finding {
	fault := rules.Name.fault(name)
	if fault == "" {
		return nil
	}
	verdict := rules.Name.verdict("the name " + fault)
	return []dialects.Finding{{
		Keyword: "name", Severity: verdict.Severity, Message: verdict.Message,
		Fix: "offer the tool under another name: " + rules.Name.allowed(),
	}}
}

// verdict says what becomes of a name that something is wrong with.
func (r NameRule) verdict(fault string) Keyword {
	verdict := Keyword{Severity: dialects.Refused, Message: "the request is refused"}
	if r.Severity != "" {
		verdict.Severity = r.Severity
	}
	if r.Message != "" {
		verdict.Message = r.Message
	}
	verdict.Message += ": " + fault
	return verdict
}

// fault returns what is wrong with a name, as the end of a sentence, or "".
func (r NameRule) fault(name string) string {
	if name == "" && (r.Most > 0 || r.Extra != "") {
		return "is empty"
	}
	if r.Most > 0 && len(name) > r.Most {
		return fmt.Sprintf("has %d bytes, more than %d", len(name), r.Most)
	}
	if r.Extra == "" {
		return ""
	}
	for _, c := range name {
		if !letter(c) && !(c >= '0' && c <= '9') && !strings.ContainsRune(r.Extra, c) {
			return fmt.Sprintf("holds %q", c)
		}
	}
	if first := rune(name[0]); r.First != "" && !letter(first) && !strings.ContainsRune(r.First, first) {
		return fmt.Sprintf("begins with %q", first)
	}
	return ""
}

func letter(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// allowed says what names may look like.
func (r NameRule) allowed() string {
	var parts []string
	if r.Extra != "" {
		parts = append(parts, "ASCII letters, digits and "+strings.Join(strings.Split(r.Extra, ""), " "))
	}
	if r.First != "" {
		parts = append(parts, "a letter or one of "+r.First+" at the beginning")
	}
	if r.Most > 0 {
		parts = append(parts, fmt.Sprintf("at most %d bytes", r.Most))
	}
	return strings.Join(parts, ", ")
}

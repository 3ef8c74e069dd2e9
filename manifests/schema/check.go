package schema

import (
	"encoding/json"
	"hash/maphash"
	"math"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"unicode/utf8"
)

// maxConstantBytes is how large one value of const or enum may be. It is the length of
// the value's canonical text, which is about that of its JSON text.
const maxConstantBytes = 4 << 10

// check is one keyword that looks at a value only, not at what is inside it. The
// validator has these keywords too, but it compares and copies without a bound and
// writes what it wanted and what it got into each message.
type check func(m *meter, value any, report reporter)

// reporter takes a failure: the keyword's place in the schema, and a message for the
// cases in which the place does not say enough.
type reporter func(keywordPath, message string)

// Messages that the explainer knows.
const (
	failedMessage     = "does not fit"
	notAllowedMessage = "not allowed"
	typeMismatch      = "has the wrong type"
	patternMessage    = "does not match the pattern"
)

// checksOf compiles the keywords of one schema. The type is not among them.
func checksOf(keywords map[string]any, d draft) ([]check, error) {
	var checks []check
	for _, keyword := range keys(keywords) {
		made, err := checkOf(keyword, keywords[keyword], d)
		if err != nil {
			return nil, err
		}
		if made != nil {
			checks = append(checks, made)
		}
	}
	return checks, nil
}

func checkOf(keyword string, want any, d draft) (check, error) {
	switch keyword {
	case "const":
		return amongCheck(keyword, []any{want}), nil
	case "enum":
		values, _ := want.([]any)
		return amongCheck(keyword, values), nil
	case "pattern":
		source, _ := want.(string)
		return patternCheck(source)
	case "required":
		return requiredCheck(keyword, texts(want)), nil
	case "dependentRequired":
		if d >= draft2019 {
			return dependentCheck(keyword, want), nil
		}
	case "dependencies":
		return dependentCheck(keyword, want), nil
	case "uniqueItems":
		if want == true {
			return uniqueCheck, nil
		}
	case "multipleOf":
		return multipleCheck(want), nil
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return rangeCheck(keyword, want), nil
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		return sizeCheck(keyword, want), nil
	}
	return nil, nil
}

// hasType reports whether a value is of one of the named types.
func hasType(value any, names []string) bool {
	got := typeName(value)
	for _, name := range names {
		number, isNumber := value.(json.Number)
		switch {
		case name == got, name == "number" && isNumber:
			return true
		case name == "integer" && isNumber:
			if parseDecimal(string(number)).isWhole() {
				return true
			}
		}
	}
	return false
}

func amongCheck(keyword string, values []any) check {
	known := make(map[string]struct{}, len(values))
	longest := 0
	for _, value := range values {
		text, _ := canonical(nil, value, math.MaxInt)
		known[string(text)] = struct{}{}
		longest = max(longest, len(text)+8)
	}
	return func(m *meter, value any, report reporter) {
		text, complete := canonical(m, value, longest)
		if _, found := known[string(text)]; !complete || !found {
			report(keyword, failedMessage)
		}
	}
}

func patternCheck(source string) (check, error) {
	compiled, err := compilePattern(source)
	if err != nil {
		return nil, err
	}
	return func(m *meter, value any, report reporter) {
		if text, isString := value.(string); isString && !m.matches(compiled, text) {
			report("pattern", patternMessage)
		}
	}, nil
}

func requiredCheck(keyword string, names []string) check {
	cost := len(names) + textBytes(names)/bytesPerUnit
	return func(m *meter, value any, report reporter) {
		object, isObject := value.(map[string]any)
		if !isObject {
			return
		}
		m.charge(cost)
		for _, name := range names {
			if _, has := object[name]; !has {
				report(keyword, failedMessage) // the explainer finds the others
				return
			}
		}
	}
}

func dependentCheck(keyword string, want any) check {
	named, _ := want.(map[string]any)
	wanted := map[string][]string{}
	for name, list := range named {
		if _, isList := list.([]any); isList {
			wanted[name] = texts(list)
		}
	}
	return func(m *meter, value any, report reporter) {
		object, isObject := value.(map[string]any)
		if !isObject {
			return
		}
		m.charge(len(wanted))
		for name, others := range wanted {
			if _, has := object[name]; !has {
				continue
			}
			m.charge(len(others) + textBytes(others)/bytesPerUnit)
			for i, other := range others {
				if _, has := object[other]; !has {
					report(keyword+"/"+url.PathEscape(escapePointer(name))+"/"+strconv.Itoa(i), failedMessage)
				}
			}
		}
	}
}

func uniqueCheck(m *meter, value any, report reporter) {
	elements, _ := value.([]any)
	seen := make(map[uint64]int, min(len(elements), 1<<10))
	seed := maphash.MakeSeed()
	for i, element := range elements {
		m.charge(memberCost)
		text, _ := canonical(m, element, math.MaxInt)
		sum := maphash.Bytes(seed, text)
		first, twice := seen[sum]
		if !twice {
			seen[sum] = i
			continue
		}
		other, _ := canonical(m, elements[first], math.MaxInt)
		if string(text) == string(other) {
			report("uniqueItems", "items at index "+strconv.Itoa(first)+" and "+strconv.Itoa(i)+" are equal")
			return
		}
	}
}

func multipleCheck(want any) check {
	literal, _ := want.(json.Number)
	divisor, valid := new(big.Rat).SetString(string(literal))
	if !valid || divisor.Sign() == 0 {
		return nil
	}
	cost := fractionCost(string(literal))
	return func(m *meter, value any, report reporter) {
		number, isNumber := value.(json.Number)
		if !isNumber {
			return
		}
		m.charge(cost + fractionCost(string(number)))
		dividend, _ := new(big.Rat).SetString(string(number))
		if !dividend.Quo(dividend, divisor).IsInt() {
			report("multipleOf", failedMessage)
		}
	}
}

// fractionCost is what it takes to compute with a number as an exact fraction.
func fractionCost(literal string) int {
	number := parseDecimal(literal)
	size := len(number.digits) + max(number.exponent, -number.exponent)
	return 8 + size + size*size/256
}

func rangeCheck(keyword string, want any) check {
	literal, isNumber := want.(json.Number)
	if !isNumber {
		return nil
	}
	bound := parseDecimal(string(literal))
	return func(m *meter, value any, report reporter) {
		number, isNumber := value.(json.Number)
		if !isNumber {
			return
		}
		m.charge(2)
		order := parseDecimal(string(number)).compare(bound)
		switch keyword {
		case "minimum":
			isNumber = order >= 0
		case "maximum":
			isNumber = order <= 0
		case "exclusiveMinimum":
			isNumber = order > 0
		case "exclusiveMaximum":
			isNumber = order < 0
		}
		if !isNumber {
			report(keyword, failedMessage)
		}
	}
}

func sizeCheck(keyword string, want any) check {
	literal, _ := want.(json.Number)
	count, err := literal.Float64()
	if err != nil {
		return nil
	}
	bound := int(count)
	return func(m *meter, value any, report reporter) {
		size := 0
		switch value := value.(type) {
		case string:
			if keyword != "minLength" && keyword != "maxLength" {
				return
			}
			m.charge(2 * len(value) / bytesPerUnit)
			size = utf8.RuneCountInString(value)
		case []any:
			if keyword != "minItems" && keyword != "maxItems" {
				return
			}
			size = len(value)
		case map[string]any:
			if keyword != "minProperties" && keyword != "maxProperties" {
				return
			}
			size = len(value)
		default:
			return
		}
		if isLower := keyword[1] == 'i'; isLower && size < bound || !isLower && size > bound {
			report(keyword, failedMessage)
		}
	}
}

// texts returns the strings of a list.
func texts(list any) []string {
	elements, _ := list.([]any)
	found := make([]string, 0, len(elements))
	for _, element := range elements {
		if text, isString := element.(string); isString {
			found = append(found, text)
		}
	}
	return slices.Clip(found)
}

func textBytes(texts []string) int {
	sum := 0
	for _, text := range texts {
		sum += len(text)
	}
	return sum
}

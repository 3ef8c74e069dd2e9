// Package redact removes parts of calls from their records before these are stored: what an operator's rules name, and
// its repetitions in the rest of the record.
//
// A rule has JSON Pointers (RFC 6901) into the arguments and into the result, in which * also means every member or
// element. What a pointer leads to is replaced by [Marker], whatever it is. In arguments, a text, a number or a boolean
// at which the path ends is replaced, too, since it may become an object before the tool gets it. Arguments that are
// not JSON are replaced as a whole, and so are an output, data or a part of the content that is no object and no array
// if a rule has pointers into the result.
//
// Texts, numbers and booleans that were replaced are then looked for in all other texts of the record, if they have at
// least [MinRepeated] bytes: as they are, and with the encodings of package masking. If it is not known what they are,
// or if there are too many to be looked for, all texts are replaced.
package redact

import (
	"path"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/replay"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

const (
	// Marker takes the place of what was redacted.
	Marker = "[redacted]"
	// MinRepeated is the minimum length in bytes of a value that is looked for in the rest of the record.
	MinRepeated = 6
)

// Rules are an operator's rules. It is immutable: nil redacts nothing.
type Rules []manifests.PolicyRedaction

// pointer is a JSON Pointer without escapes.
type pointer []string

func parse(text string) pointer {
	tokens := strings.Split(text, "/")[1:] // the text is empty or begins with /
	for i, token := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return tokens
}

// Redact returns the call without what the rules redact. Its record says so in Redacted. The manifest is that of its
// tool, or nil if the tool is unknown. The memory of the given entry is not changed.
func (r Rules) Redact(e executor.Entry, m *manifests.Manifest) executor.Entry {
	arguments, result := r.of(e, m)
	if len(arguments)+len(result) == 0 {
		return e
	}
	e.Inputs = replay.Withhold(e.Inputs, "the policy redacts the records of its tool")
	w := &work{exact: map[string]bool{}}
	record := &e.Record
	if len(arguments) > 0 {
		w.arguments(record, arguments)
	}
	results := []*tool.Result{&record.Result}
	if len(record.Cuts) > 0 {
		results = append(results, &e.Whole)
	}
	w.inResult = true
	for _, one := range results {
		one.Content = slices.Clone(one.Content)
		if len(result) > 0 {
			w.result(one, result)
		}
	}
	if !w.found {
		return e
	}
	record.Redacted = true
	w.prepare(size(e))
	for _, one := range results {
		w.cleanResult(one)
	}
	w.cleanRecord(record)
	e.Cause = w.clean(e.Cause)
	for _, cut := range record.Cuts { // the text may end within a value
		removePart(&record.Result, cut.Part)
	}
	return e
}

// of returns the pointers into the arguments and the result of a call.
func (r Rules) of(e executor.Entry, m *manifests.Manifest) (arguments, result []pointer) {
	for _, rule := range r {
		if !named(rule, e.Tool) && !named(rule, e.Record.Function.Name) {
			continue
		}
		for _, text := range rule.Arguments {
			p := parse(text)
			arguments = append(arguments, p)
			if m == nil || len(p) == 0 {
				continue
			}
			for _, alias := range m.ParameterAliases {
				if p[0] == "*" || p[0] == alias.Parameter {
					arguments = append(arguments, append(pointer{alias.Name}, p[1:]...))
				}
			}
		}
		for _, text := range rule.Result {
			result = append(result, parse(text))
		}
	}
	return arguments, result
}

// arguments redacts the arguments of a call, and the repairs of what it has redacted.
func (w *work) arguments(record *tool.Record, pointers []pointer) {
	text := record.Function.Arguments
	for _, repair := range record.Repairs {
		switch {
		case repair.Rule == unwrapped:
			for _, p := range slices.Clone(pointers) {
				pointers = append(pointers, append(pointer{"*"}, p...))
			}
		case repair.Rule == tolerated: // the arguments are not JSON, but this is
			if document, err := jsontext.Parse(string(repair.To), jsontext.Limits{Repeated: true}); err == nil {
				w.replace(document, pointers)
				w.found, text, record.Function.Arguments = true, "", Marker
			}
		}
	}
	document, err := jsontext.Parse(text, jsontext.Limits{Repeated: true})
	switch {
	case text == "":
	case record.Type == tool.CustomCall: // the text is the value of the only parameter
		w.take(text)
		w.found, record.Function.Arguments = true, Marker
	case err != nil || record.Result.Kind == tool.InvalidArguments: // a parameter may have another name, or be elsewhere
		w.found, w.all = true, true
	default:
		record.Function.Arguments = w.replace(document, pointers)
	}
	record.Repairs = slices.Clone(record.Repairs)
	for i := range record.Repairs {
		repair := &record.Repairs[i]
		if repair.Rule != filledIn && slices.ContainsFunc(pointers, func(p pointer) bool { return p.includes(repair.Path) }) {
			for _, text := range []string{string(repair.From), string(repair.To)} {
				if document, err := jsontext.Parse(text, jsontext.Limits{Repeated: true}); err == nil {
					w.collect(document.Root())
				}
			}
			repair.From, repair.To = marked, marked
		}
	}
}

// The rules of repairs that say something about where parameters are, or nothing about what a model wrote.
const (
	unwrapped = "unwrap"
	tolerated = "tolerant_json"
	filledIn  = "default"
)

var marked = []byte(jsontext.Quote(Marker))

// includes reports whether the path of a repair may be in the parameter that a pointer leads to or through.
func (p pointer) includes(at string) bool {
	if len(p) == 0 || p[0] == "*" {
		return true
	}
	member := schema.MemberPath("", p[0])
	rest, ok := strings.CutPrefix(at, member)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// result redacts what pointers lead to in a result.
func (w *work) result(r *tool.Result, pointers []pointer) {
	part := func(text string) string {
		document, err := jsontext.Parse(text, jsontext.Limits{Repeated: true})
		switch {
		case text == "":
			return ""
		case err != nil || document.Root().Kind() == jsontext.String || document.Root().Kind() == jsontext.Number:
			w.found = true
			return Marker
		}
		return w.replace(document, pointers)
	}
	if r.Output = part(r.Output); len(r.Data) > 0 {
		r.Data = []byte(part(string(r.Data)))
		if string(r.Data) == Marker {
			r.Data = marked
		}
	}
	if r.Kind == tool.ToolFailed { // in the words of the tool
		r.Error = part(r.Error)
	}
	for i := range r.Content {
		c := &r.Content[i]
		c.Text = part(c.Text)
		if len(c.Data) > 0 || c.URL != "" {
			w.found = true
			removePart(r, partOf(i))
		}
	}
}

// named reports whether a rule names a tool.
func named(rule manifests.PolicyRedaction, name string) bool {
	return slices.ContainsFunc(rule.Tools, func(pattern string) bool {
		matches, err := path.Match(pattern, name)
		return matches && err == nil
	})
}

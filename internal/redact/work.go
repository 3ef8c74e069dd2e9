package redact

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/masking"
	"github.com/caisson-run/caisson/tool"
)

// Bounds of the search for repeated values. Beyond them, all texts are redacted.
const (
	maxWork   = 256 << 20 // the number of forms of values, times the bytes of the texts; it takes half a second
	maxMasked = 8 << 10   // bytes of a value that is looked for in its encodings; a longer one is looked for as it is
)

// work is the redaction of one record.
type work struct {
	found    bool            // anything to redact
	all      bool            // redact all texts
	inResult bool            // the pointers are into the result
	exact    map[string]bool // the values, of any length
	masker   *masking.Masker // of those with at least MinRepeated bytes
	long     []string        // those with more than maxMasked bytes
}

// edit replaces a part of a text.
type edit struct {
	start, end int
	by         string
}

// apply returns a text with edits, of which those inside others have no effect.
func apply(text string, edits []edit) string {
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) })
	var b strings.Builder
	at := 0
	for _, e := range edits {
		if e.start >= at {
			b.WriteString(text[at:e.start])
			b.WriteString(e.by)
			at = e.end
		}
	}
	b.WriteString(text[at:])
	return b.String()
}

// replace returns a document with what pointers lead to replaced.
func (w *work) replace(document *jsontext.Document, pointers []pointer) string {
	var edits []edit
	for _, p := range pointers {
		w.follow(document.Root(), p, func(v jsontext.Value) {
			w.found = true
			w.collect(v)
			start, end := v.Span()
			edits = append(edits, edit{start, end, string(marked)})
		})
	}
	return apply(document.Text(), edits)
}

// follow calls replace for the values that a pointer leads to. In arguments, it does so for texts, numbers and booleans
// at which the pointer ends early, which repairs make objects; in results, for texts with JSON to which it leads.
func (w *work) follow(v jsontext.Value, p pointer, replace func(v jsontext.Value)) {
	switch kind := v.Kind(); {
	case len(p) == 0:
		replace(v)
	case kind == jsontext.Object:
		for name, member := range v.Members() {
			if p[0] == "*" || p[0] == name.String() {
				w.follow(member, p[1:], replace)
			}
		}
	case kind == jsontext.Array:
		for i, element := range v.Elements() {
			if p[0] == "*" || p[0] == strconv.Itoa(i) {
				w.follow(element, p[1:], replace)
			}
		}
	case w.inResult:
		if inner := container(v.String()); inner != nil {
			w.follow(inner.Root(), p, func(jsontext.Value) { replace(v) })
		}
	case kind != jsontext.Null:
		replace(v)
	}
}

// collect collects the texts, numbers and booleans in a value, and in JSON that its texts hold.
func (w *work) collect(v jsontext.Value) {
	switch v.Kind() {
	case jsontext.Object:
		for _, member := range v.Members() {
			w.collect(member)
		}
	case jsontext.Array:
		for _, element := range v.Elements() {
			w.collect(element)
		}
	case jsontext.String:
		w.take(v.String())
		if inner := container(v.String()); inner != nil {
			w.collect(inner.Root())
		}
	case jsontext.Number:
		w.take(v.Text())
		if f, err := strconv.ParseFloat(v.Text(), 64); err == nil { // as programs write it
			w.take(strconv.FormatFloat(f, 'f', -1, 64))
			w.take(strconv.FormatFloat(f, 'g', -1, 64))
		}
	case jsontext.Bool:
		w.take(v.Text())
	}
}

func (w *work) take(text string) {
	w.exact[text] = true
	w.exact[strings.TrimSpace(text)] = true
}

// container returns a text as JSON if it is an object or an array, and nil otherwise.
func container(text string) *jsontext.Document {
	if trimmed := strings.TrimSpace(text); trimmed == "" || trimmed[0] != '{' && trimmed[0] != '[' {
		return nil
	}
	document, err := jsontext.Parse(text, jsontext.Limits{Repeated: true})
	if err != nil {
		return nil
	}
	return document
}

// prepare gets ready to look for the collected values in texts of so many bytes.
func (w *work) prepare(bytes int) {
	var values []masking.Value
	for text := range w.exact {
		switch {
		case len(text) < MinRepeated || strings.Contains(Marker, text):
		case len(text) > maxMasked:
			w.long = append(w.long, text)
		default:
			for _, form := range forms(text) {
				values = append(values, masking.Value{Text: form, Placeholder: Marker})
			}
		}
	}
	if (len(values)+len(w.long))*bytes > maxWork {
		w.all = true
		return
	}
	slices.SortFunc(w.long, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	if len(values) > 0 {
		w.masker = masking.New(values)
	}
}

// forms returns a value as it is, and as a query and a JSON text have it: each is looked for with a further encoding.
func forms(text string) []string {
	all := []string{text, strings.ReplaceAll(text, " ", "+")}
	quoted, err := json.Marshal(text) // which escapes more than jsontext.Quote
	for _, form := range []string{string(quoted), jsontext.Quote(text)} {
		if err == nil && utf8.ValidString(text) {
			all = append(all, form[1:len(form)-1])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// size returns about how many bytes the texts of an entry have.
func size(e executor.Entry) int {
	n := len(e.Record.Function.Arguments) + len(e.Record.Log) + e.Record.Result.Size() + len(e.Cause) + 4<<10
	if len(e.Record.Cuts) > 0 {
		n += e.Whole.Size()
	}
	for _, repair := range e.Record.Repairs {
		n += len(repair.From) + len(repair.To)
	}
	for _, denial := range e.Record.Denials {
		n += len(denial.Value) + len(denial.Rule) + len(denial.Allow.Manifest) + len(denial.Allow.Grant)
	}
	for _, call := range e.Record.HostCalls {
		n += len(call.Target) + len(call.Status)
	}
	return n
}

// mask returns a text without the values.
func (w *work) mask(text string) string {
	for _, long := range w.long {
		text = strings.ReplaceAll(text, long, Marker)
	}
	if w.masker != nil && len(text) >= MinRepeated {
		text = string(w.masker.Mask([]byte(text), len(text), masking.Never))
	}
	return text
}

// clean returns a text without the values: if it is JSON, it stays JSON.
func (w *work) clean(text string) string {
	switch {
	case text == "":
		return ""
	case w.all:
		return Marker
	}
	if document := container(text); document != nil {
		text = w.cleanDocument(document, false)
	}
	return w.mask(text)
}

// cleanJSON is like clean for a member of a record that must be JSON. With exact, texts and numbers that are equal to a
// value are replaced whatever their length.
func (w *work) cleanJSON(text json.RawMessage, exact bool) json.RawMessage {
	if len(text) == 0 || string(text) == "null" {
		return text
	}
	document, err := jsontext.Parse(string(text), jsontext.Limits{Repeated: true})
	if w.all || err != nil {
		return marked
	}
	if cleaned := w.cleanDocument(document, exact); w.mask(cleaned) == cleaned {
		return json.RawMessage(cleaned)
	}
	return marked
}

// cleanDocument returns a document without the values.
func (w *work) cleanDocument(document *jsontext.Document, exact bool) string {
	var edits []edit
	var visit func(v jsontext.Value)
	visit = func(v jsontext.Value) {
		start, end := v.Span()
		switch v.Kind() {
		case jsontext.Object:
			renamed := 0
			for name, member := range v.Members() {
				if masked := w.mask(name.String()); masked != name.String() {
					if renamed++; renamed > 1 { // names must differ
						masked += " " + strconv.Itoa(renamed)
					}
					start, end := name.Span()
					edits = append(edits, edit{start, end, jsontext.Quote(masked)})
				}
				visit(member)
			}
		case jsontext.Array:
			for _, element := range v.Elements() {
				visit(element)
			}
		case jsontext.String:
			masked := w.clean(v.String())
			if exact && w.exact[v.String()] {
				masked = Marker
			}
			if masked != v.String() {
				edits = append(edits, edit{start, end, jsontext.Quote(masked)})
			}
		case jsontext.Number, jsontext.Bool:
			if w.mask(v.Text()) != v.Text() || exact && w.exact[v.Text()] {
				edits = append(edits, edit{start, end, string(marked)})
			}
		}
	}
	visit(document.Root())
	return apply(document.Text(), edits)
}

// cleanResult removes the values from a result, whose content must not be shared.
func (w *work) cleanResult(r *tool.Result) {
	r.Output, r.Error, r.Data = w.clean(r.Output), w.clean(r.Error), w.cleanJSON(r.Data, false)
	for i := range r.Content {
		c := &r.Content[i]
		if w.all || w.mask(string(c.Data)) != string(c.Data) {
			removePart(r, partOf(i))
		}
		c.Text, c.URL, c.Name, c.MIMEType = w.clean(c.Text), w.clean(c.URL), w.clean(c.Name), w.mask(c.MIMEType)
	}
}

// cleanRecord removes the values from a record, except from its result.
func (w *work) cleanRecord(r *tool.Record) {
	for _, text := range []*string{&r.Function.Arguments, &r.Log, &r.Signature, &r.Origin} {
		*text = w.clean(*text)
	}
	if !w.all { // names are not what a rule redacts, but may repeat it
		r.ID, r.Function.Name = w.mask(r.ID), w.mask(r.Function.Name)
	}
	r.Repairs = slices.Clone(r.Repairs)
	for i := range r.Repairs {
		repair := &r.Repairs[i]
		repair.Path = w.mask(repair.Path)
		repair.From, repair.To = w.cleanJSON(repair.From, true), w.cleanJSON(repair.To, true)
	}
	r.Denials = slices.Clone(r.Denials)
	for i := range r.Denials {
		d := &r.Denials[i]
		d.Value, d.Rule = w.clean(d.Value), w.mask(d.Rule)
		if d.Allow.Manifest, d.Allow.Grant = w.allowed(d.Allow.Manifest), w.allowed(d.Allow.Grant); w.all {
			d.Allow = tool.Allow{}
		}
	}
	r.HostCalls = slices.Clone(r.HostCalls)
	for i := range r.HostCalls {
		h := &r.HostCalls[i]
		h.Target, h.Status = w.clean(h.Target), w.mask(h.Status)
	}
}

// allowed returns a rule without the values: nothing, rather than one that would allow something else.
func (w *work) allowed(rule json.RawMessage) json.RawMessage {
	if cleaned := w.cleanJSON(rule, false); string(cleaned) == string(rule) {
		return rule
	}
	return nil
}

func partOf(content int) string { return fmt.Sprintf("content[%d]", content) }

// removePart removes a part of a result, named as in [tool.Cut].
func removePart(r *tool.Result, part string) {
	switch part {
	case "output":
		r.Output = Marker
	case "error":
		r.Error = Marker
	case "data":
		r.Data = marked
	}
	for i := range r.Content {
		if c := &r.Content[i]; part == partOf(i) {
			*c = tool.Content{Type: "text", Text: Marker}
		}
	}
}

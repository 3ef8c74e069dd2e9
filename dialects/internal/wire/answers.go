package wire

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"mime"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/tool"
)

// Answers collects the answers in one document. It is for one goroutine.
type Answers struct {
	found   dialects.Answers
	failed  error           // why the answers of this turn cannot be used
	earlier []tool.Answer   // outputs that calls follow
	decided []tool.Approval // approvals that calls follow
	called  map[string]int  // how many of the earlier outputs precede the call with an id
}

// ReadAnswers calls visit with each element of a document, which is one element, several, an array of them, or a
// request with the array in the member under, and returns what visit added. No list is nil. An error of visit is
// about the answers of one turn, and counts unless the document continues with another turn.
func ReadAnswers[T any](
	r Reader, document []byte, under string, visit func(r Reader, answers *Answers, element *T) error,
) (dialects.Answers, error) {
	answers := &Answers{found: none()}
	try := func(r Reader, element json.RawMessage) error {
		var value T
		err := r.Into("", element, &value)
		if err == nil {
			err = visit(r, answers, &value)
		}
		if answers.failed == nil {
			answers.failed = err
		}
		return nil
	}
	err := r.Sequence(document, func(at Reader, element json.RawMessage) error {
		if at.Path == "" && element[0] == '{' {
			var members map[string]json.RawMessage
			if err := r.Into("", element, &members); err != nil {
				return err
			}
			if list := members[under]; under != "" && !Absent(list) && Absent(members["type"]) {
				return Each(r, under, list, maxElements, func(r Reader, element *json.RawMessage) error { return try(r, *element) })
			}
		}
		return try(at, element)
	})
	if err = cmp.Or(err, answers.failed); err != nil {
		return dialects.Answers{}, err
	}
	return answers.all(), nil
}

// all returns the answers of the last turn. It drops outputs that precede the call with their id.
func (a *Answers) all() dialects.Answers {
	earlier := none()
	for i, output := range a.earlier {
		if i >= a.called[output.CallID] {
			earlier.Outputs = append(earlier.Outputs, output)
		}
	}
	earlier.Approvals = append(earlier.Approvals, a.decided...)
	if len(earlier.Outputs)+len(earlier.Approvals) > 0 {
		a.found.Earlier = &earlier
	}
	return a.found
}

func none() dialects.Answers {
	return dialects.Answers{Outputs: []tool.Answer{}, Named: []dialects.NamedOutput{}, Approvals: []tool.Approval{}}
}

// Turn drops the answers so far: a message of the model follows them, so they are of an earlier turn.
func (a *Answers) Turn() { *a = Answers{found: none()} }

// Called takes a call, or a request for approval, in a format that does not say which calls are of one turn. The
// answers before it are Earlier ones, and none of them answers this call.
func (a *Answers) Called(id string) {
	a.earlier, a.decided = append(a.earlier, a.found.Outputs...), append(a.decided, a.found.Approvals...)
	if a.called == nil {
		a.called = map[string]int{}
	}
	a.called[id] = len(a.earlier)
	a.found, a.failed = none(), nil
}

// Add adds the output of a call. The reader is that of the part that holds it.
func (a *Answers) Add(r Reader, output tool.Answer) error { return add(r, a, &a.found.Outputs, output) }

// AddNamed adds an output of a call of which only the tool's name is known.
func (a *Answers) AddNamed(r Reader, output dialects.NamedOutput) error {
	return add(r, a, &a.found.Named, output)
}

// AddApproval adds the answer to a request for approval.
func (a *Answers) AddApproval(r Reader, approval tool.Approval) error {
	return add(r, a, &a.found.Approvals, approval)
}

// add adds an answer of any kind, within the bound on all of them.
func add[T any](r Reader, a *Answers, list *[]T, answer T) error {
	if len(a.found.Outputs)+len(a.found.Named)+len(a.found.Approvals)+len(a.earlier)+len(a.decided) == MaxCalls {
		return r.Fail("", "is one answer too many; there can be %d", MaxCalls)
	}
	*list = append(*list, answer)
	return nil
}

// Stored returns the result that a text encodes as JSON, in the form of records, or false if it is anything else.
// Contradictions are not results: a success with an error, or an unknown kind.
func Stored(text []byte) (tool.Result, bool) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != '{' || !json.Valid(text) {
		return tool.Result{}, false
	}
	var stored struct {
		Says *bool `json:"success"`
		tool.Result
	}
	plain, err := decode.Plain(text, &stored)
	if err != nil {
		return tool.Result{}, false
	}
	decoder := json.NewDecoder(bytes.NewReader(plain))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&stored) != nil || stored.Says == nil {
		return tool.Result{}, false
	}
	result := stored.Result
	result.Success = *stored.Says
	if !result.Success && result.Kind == "" {
		result.Kind = tool.ToolFailed
	}
	if result.Success && (result.Kind != "" || result.Error != "") ||
		!result.Success && !slices.Contains(tool.Kinds(), result.Kind) {
		return tool.Result{}, false
	}
	return result, true
}

// Outcome assembles a result from the parts in which a client submits it. The zero value is ready.
type Outcome struct {
	parts []tool.Content
	first int // the number of texts before all other parts
}

// Text adds a text, unless it is empty.
func (o *Outcome) Text(text string) {
	if text == "" {
		return
	}
	if o.first == len(o.parts) {
		o.first++
	}
	o.parts = append(o.parts, tool.Content{Type: "text", Text: text})
}

// Part adds a part of any type.
func (o *Outcome) Part(part tool.Content) {
	if part.Type == "text" {
		o.Text(part.Text)
		return
	}
	o.parts = append(o.parts, part)
}

// Result returns the same as [Outcome.Said], unless the only part is a text that is the JSON of a result;
// then it returns that result.
func (o *Outcome) Result(failed bool) tool.Result {
	if len(o.parts) == 1 && o.first == 1 {
		if stored, ok := Stored([]byte(o.parts[0].Text)); ok && !(failed && stored.Success) {
			return stored
		}
	}
	return o.Said(failed)
}

// Said returns the result that the parts make up. The first text is the output; if the call failed, the
// first text is the error, and the one after it the output. Everything else is content.
//
// Texts never determine the kind of a failure, since they may hold whatever a tool printed.
func (o *Outcome) Said(failed bool) tool.Result {
	result, rest, texts := tool.Result{Success: !failed}, o.parts, o.first
	next := func() string {
		if texts == 0 {
			return ""
		}
		text := rest[0].Text
		rest, texts = rest[1:], texts-1
		return text
	}
	if failed {
		result.Kind = tool.ToolFailed
		result.Error = Reason(result.Kind, next())
	}
	result.Output = next()
	if len(rest) > 0 {
		result.Content = rest
	}
	return result
}

// Reason is the reverse of [Failure]: it returns the error in a text that says why a call failed.
func Reason(kind tool.Kind, text string) string {
	if text == string(kind) {
		return ""
	}
	return strings.TrimPrefix(text, string(kind)+": ")
}

// Linked returns part with the link as its URL, or with the MIME type and data of a data URL.
func Linked(r Reader, path, link string, part tool.Content) (tool.Content, error) {
	if link == "" {
		return part, r.Fail(path, "is missing; want a URL")
	}
	inside, isData := strings.CutPrefix(link, "data:")
	if !isData {
		part.URL = link
		return part, nil
	}
	about, encoded, found := strings.Cut(inside, ",")
	kind, isBase64 := strings.CutSuffix(about, ";base64")
	data, err := base64.StdEncoding.DecodeString(encoded)
	if !found || !isBase64 || err != nil {
		return part, r.Fail(path, "is not a data URL with base64: want data:image/png;base64,…")
	}
	part.Data = data
	// Models have no use for the parameters of the MIME type.
	media, _, err := mime.ParseMediaType(kind)
	if err != nil {
		return part, r.Fail(path, "is a data URL without a MIME type: want data:image/png;base64,…")
	}
	part.MIMEType = strings.Clone(media) // not with the whole link
	return part, nil
}

package answer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/tool"
)

type object struct {
	tool.Result
	bare    json.RawMessage // only the member "data", if Data has other members too
	added   []string        // the names of those other members
	dropped []string        // the names of members for which Data or a part has no place
	leftOut string          // the parts of the output that the result lacks, for people; empty if none
}

// readObject reads a result object: {"success": bool, "output", "data", "error", "content"}. Keys are
// case-sensitive. Members of other names are data. A guest cannot set what only the host decides, such
// as the kind of a failure.
//
// If other members are invalid, a failure is still a failure and keeps its reason.
func readObject(ctx context.Context, output []byte) (object, error) {
	members := []string{"success", "message", "output", "data", "error", "content"}
	isKnown := func(name string) bool { return slices.Contains(members, name) }
	doc, err := readJSON(ctx, output, jsontext.Limits{Values: len(output) + 1, Keep: isKnown})
	if err == nil && doc.Root().Kind() != jsontext.Object {
		err = errNoObject
	}
	if err != nil {
		return object{}, fmt.Errorf("want a JSON object: %w", err)
	}
	said := doc.Root().Get("success")
	if said.Kind() == 0 {
		return object{}, errors.New(`it has no member "success"`)
	}
	r := objectReader{ctx: ctx, text: output, root: doc.Root()}
	reason := r.reason()
	success, isTruth := truth(said)
	if !isTruth && reason == "" {
		return object{}, fmt.Errorf(`member "success": want true or false, not %s`, tool.Shown(said.Text(), maxShown))
	}
	err = checkJSON(ctx, output)
	switch unusable, ok := errors.AsType[unusableJSON](err); {
	case ok && !success && reason != "":
		return object{Result: tool.Result{Error: reason}, leftOut: "all of it, since " + string(unusable)}, nil
	case err != nil:
		return object{}, err
	}
	r.o.Success = success
	if !success {
		r.o.Error = reason
	}
	err = r.read()
	return r.o, err
}

// truth returns whether the member "success" says true or false, also as a string, and which.
func truth(said jsontext.Value) (success, isTruth bool) {
	word := strings.ToLower(strings.TrimSpace(said.String()))
	if said.Kind() == jsontext.Bool {
		word = said.Text()
	}
	return word == "true", word == "true" || word == "false"
}

// objectReader reads the members of a result object.
type objectReader struct {
	ctx   context.Context
	text  []byte
	root  jsontext.Value
	told  string // the name of the member that the reason is; empty if it is only a part of one
	extra []byte // the text of the members that are data, with a comma before each
	o     object
}

// reason returns why the tool failed, if it says so: the member "error", or in it what most APIs call
// the message; otherwise the member "message". Anything else in "error" is quoted as JSON.
func (r *objectReader) reason() string {
	said := r.root.Get("error")
	switch r.told = "error"; said.Kind() {
	case jsontext.String:
		if reason := strings.TrimSpace(said.String()); reason != "" {
			return valid(reason)
		}
	case jsontext.Object, jsontext.Array, jsontext.Number:
		if said.Kind() != jsontext.Number && said.Len() == 0 {
			break
		}
		if inside, err := readJSON(r.ctx, []byte(said.Text()),
			jsontext.Limits{Values: len(said.Text()) + 1, Keep: isMessage}); err == nil {
			for _, message := range inside.Root().Members() {
				if reason := strings.TrimSpace(message.String()); reason != "" {
					if said.Len() > 1 {
						r.told = ""
					}
					return valid(reason)
				}
			}
		}
		if text, err := compact([]byte(said.Text())); err == nil {
			return string(text)
		}
	}
	reason := valid(strings.TrimSpace(r.root.Get("message").String()))
	if r.told = ""; reason != "" {
		r.told = "message"
	}
	return reason
}

func isMessage(name string) bool { return name == "message" || name == "text" }

// valid returns a text as valid UTF-8. It does not hold the output that the text is a part of.
func valid(text string) string { return strings.Clone(strings.ToValidUTF8(text, "\uFFFD")) }

// read reads everything else.
func (r *objectReader) read() error {
	r.extra = otherMembers(r.root, r.text)
	for _, name := range []string{"error", "message"} {
		told := name == r.told && !r.o.Success
		if !told && (name == "message" || !saysNothing(r.root.Get(name))) {
			r.add(name)
		}
	}
	err := r.field("output", func(text []byte) error { return rephrase(json.Unmarshal(text, &r.o.Output)) })
	if err == nil {
		err = r.field("content", func(text []byte) error {
			content, unknown, err := readContent(r.ctx, text)
			if err == nil {
				r.o.Content, r.o.dropped = content, unknown
			}
			return err
		})
	}
	if err != nil {
		return err
	}
	err = r.combine()
	r.o.leftOut = namesOfMembers(r.o.dropped)
	return err
}

// saysNothing reports whether a value is one that many programs print for the lack of an error.
func saysNothing(v jsontext.Value) bool {
	switch v.Kind() {
	case jsontext.Object, jsontext.Array:
		return v.Len() == 0
	}
	return v.Kind() == 0 || v.Text() == `""` || v.Text() == "null" || v.Text() == "false"
}

// field reads a member into a field of the result. In a failure, a member that does not fit is data.
func (r *objectReader) field(name string, read func(text []byte) error) error {
	value := r.root.Get(name)
	if r.ctx.Err() != nil || value.Kind() == 0 {
		return r.ctx.Err()
	}
	err := read([]byte(value.Text()))
	switch {
	case err == nil:
		return nil
	case r.ctx.Err() == nil && !r.o.Success:
		r.add(name)
		return nil
	}
	return fmt.Errorf("member %q: %w", name, err)
}

// add makes a member data.
func (r *objectReader) add(name string) {
	if r.root.Get(name).Kind() == 0 {
		return
	}
	r.extra = append(append(append(append(r.extra, `,"`...), name...), `":`...), r.root.Get(name).Text()...)
}

// combine sets the data: the member "data", the other members, or both. If "data" is an object, the other members are
// added to it, except those whose names it has; otherwise it becomes one of them.
func (r *objectReader) combine() error {
	var bare json.RawMessage
	if said := r.root.Get("data"); said.Kind() != 0 && said.Kind() != jsontext.Null {
		var err error
		if bare, err = compact([]byte(said.Text())); err != nil {
			return err
		}
	}
	if r.o.Data = bare; len(r.extra) == 0 {
		return nil
	}
	r.extra[0] = '{'
	added, err := compact(append(r.extra, '}'))
	if err != nil || bare == nil {
		r.o.Data = added
		return err
	}
	return r.o.join(r.ctx, added)
}

// membersAtOnce is the number of members of an object between checks of the context.
const membersAtOnce = 4096

// join adds the members of an object to the data.
func (o *object) join(ctx context.Context, extra json.RawMessage) error {
	added, err := readJSON(ctx, extra, jsontext.Limits{Values: len(extra) + 1})
	if err != nil {
		return err
	}
	data, err := readJSON(ctx, o.Data, jsontext.Limits{Values: len(o.Data) + 1})
	if err != nil {
		return err
	}
	has := map[string]bool{}
	for name := range data.Root().Members() {
		if has[name.String()] = true; len(has)%membersAtOnce == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	var members bytes.Buffer
	for name, value := range added.Root().Members() {
		if has[name.String()] {
			o.dropped = append(o.dropped, name.String())
			continue
		}
		if o.added = append(o.added, name.String()); len(o.added)%membersAtOnce == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		members.WriteString("," + name.Text() + ":" + value.Text())
	}
	o.bare = o.Data
	start := o.bare[:len(o.bare)-1] // an object without its end
	isObject := data.Root().Kind() == jsontext.Object
	if !isObject {
		members.WriteString(`,"data":`)
		members.Write(o.bare)
	}
	if !isObject || len(has) == 0 {
		start = []byte("{")
		members.Next(1) // the comma
	}
	o.Data = slices.Concat(start, members.Bytes(), []byte("}"))
	return nil
}

// namesOfMembers lists the first of some members of an object, for people.
func namesOfMembers(names []string) string {
	const limit = 8
	var shown []string
	for _, name := range names[:min(len(names), limit)] {
		shown = append(shown, strconv.Quote(tool.Shown(name, maxShown)))
	}
	if more := len(names) - limit; more > 0 {
		shown = append(shown, fmt.Sprintf("%d more", more))
	}
	return strings.Join(shown, ", ")
}

// otherMembers returns the text of the members of an object that were not kept when it was read, with a comma before
// each. It is the text between those that were kept.
func otherMembers(object jsontext.Value, text []byte) (extra []byte) {
	add := func(between []byte) {
		if between = bytes.Trim(between, ", \t\r\n"); len(between) > 0 {
			extra = append(append(extra, ','), between...)
		}
	}
	start, end := object.Span()
	at := start + 1
	for name, value := range object.Members() {
		next, _ := name.Span()
		add(text[at:next])
		_, at = value.Span()
	}
	add(text[at : end-1])
	return extra
}

const maxShown = 128 // bytes of a name that an error shows

var errNoObject = errors.New("it is not exactly one JSON object")

// Package dialecttest has helpers for the tests of all dialects: for documents under testdata, and for streams
// that are read whole and shown.
package dialecttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// Fixture returns a document under testdata.
func Fixture(t testing.TB, name string) []byte {
	t.Helper()
	return noerr.Get(os.ReadFile(filepath.Join("testdata", name)))(t)
}

// Compact returns a document under testdata without white space, as the dialects write it.
func Compact(t testing.TB, name string) string {
	t.Helper()
	var text bytes.Buffer
	noerr.Check(t, json.Compact(&text, Fixture(t, name)))
	return text.String()
}

// Feed gives server-sent events to a new stream, and returns it with all pieces. It stops at the first error.
func Feed(d dialects.Dialect, events string) (dialects.Stream, []tool.StreamResponse, error) {
	stream, pieces := d.Stream(), []tool.StreamResponse(nil)
	for event, err := range wire.Transcript([]byte(events)) {
		if err != nil {
			return stream, pieces, err
		}
		more, err := stream.Event(event.Name, event.Data)
		pieces = append(pieces, more...)
		if err != nil {
			return stream, pieces, err
		}
	}
	more, err := stream.End()
	return stream, append(pieces, more...), err
}

// Until gives events to a new stream until one is refused, and returns the stream, how many were accepted,
// and the error.
func Until(d dialects.Dialect, event func(n int) string) (stream dialects.Stream, accepted int, err error) {
	for stream = d.Stream(); accepted < dialects.MaxDocument; accepted++ {
		if _, err = stream.Event("", []byte(event(accepted))); err != nil {
			break
		}
	}
	return stream, accepted, err
}

// Refused checks that a dialect refused a document, and why.
func Refused(t testing.TB, d dialects.Dialect, err error, want string) {
	t.Helper()
	if refusal, ok := errors.AsType[*dialects.Error](err); !ok || refusal.Dialect != d.Name() ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v; want %s", d.Name(), err, want)
	}
}

// Broken checks that a dialect refused a stream, and why, and that the stream stays broken.
func Broken(t testing.TB, d dialects.Dialect, stream dialects.Stream, err error, want string) {
	t.Helper()
	Refused(t, d, err, want)
	if _, again := stream.Event("", []byte("{}")); again != err {
		t.Errorf("then %v; want %v", again, err)
	}
	if _, again := stream.End(); again != err || stream.Response().ToolCalls == nil {
		t.Errorf("in the end %v; want %v", again, err)
	}
}

// Data returns server-sent events without names.
func Data(data ...string) string {
	var events strings.Builder
	for _, d := range data {
		events.WriteString("data: " + strings.ReplaceAll(d, "\n", "\ndata: ") + "\n\n")
	}
	return events.String()
}

// Lines shows pieces, one on each line.
func Lines(pieces []tool.StreamResponse) string {
	var text strings.Builder
	for _, p := range pieces {
		fmt.Fprintf(&text, "%s %s %q", p.ResponseType, p.ID, p.Content)
		for _, call := range p.ToolCalls {
			fmt.Fprintf(&text, " %s %s %s", call.ID, call.Function.Name, call.Function.Arguments)
			if call.Incomplete {
				text.WriteString(" incomplete")
			}
			if call.Signature != "" {
				fmt.Fprintf(&text, " signed %s", call.Signature)
			}
		}
		if p.Data != nil {
			fmt.Fprintf(&text, " %s", p.Data)
		}
		if p.Done {
			text.WriteString(" done")
		}
		text.WriteString("\n")
	}
	return text.String()
}

// Called returns the calls that pieces have, in order.
func Called(pieces []tool.StreamResponse) []tool.Call {
	calls := []tool.Call{}
	for _, p := range pieces {
		calls = append(calls, p.ToolCalls...)
	}
	return calls
}

// Said returns the text of the pieces that are for the reader.
func Said(pieces []tool.StreamResponse) string {
	var text strings.Builder
	for _, p := range pieces {
		if p.ResponseType == tool.ResponseAnswer {
			text.WriteString(p.Content)
		}
	}
	return text.String()
}

func Call(id, name, arguments string) tool.Call {
	return tool.Call{ID: id, Type: tool.FunctionCall, Function: tool.Function{Name: name, Arguments: arguments}}
}

func Custom(id, name, input string) tool.Call {
	return tool.Call{ID: id, Type: tool.CustomCall, Function: tool.Function{Name: name, Arguments: input}}
}

// Half returns a call as one in which the response was cut off.
func Half(call tool.Call) tool.Call {
	call.Incomplete = true
	return call
}

// Calls returns calls as a dialect writes them.
func Calls(t testing.TB, dialect dialects.Dialect, calls ...tool.Call) string {
	t.Helper()
	return string(noerr.Get(dialect.Calls(calls))(t))
}

// Offered returns a dialect's definitions of tools, and its findings, one on each line: the tool, the
// severity, the keyword and the path, and whether the tool was adapted.
func Offered(
	t testing.TB, dialect dialects.Dialect, strict bool, definitions ...tool.Definition,
) (written, found string) {
	t.Helper()
	options := dialects.DefinitionOptions{Strict: strict}
	text, findings, err := dialect.Definitions(definitions, options)
	again, _, errAgain := dialect.Definitions(definitions, options)
	if err != nil || errAgain != nil || findings == nil {
		t.Fatalf("%v, %v, %v", err, errAgain, findings)
	}
	if !bytes.Equal(text, again) {
		t.Errorf("%s\n%s\nprompt caches need the same bytes each time", text, again)
	}
	var lines []string
	for _, f := range findings {
		if f.Message == "" || f.Fix == "" {
			t.Errorf("%+v does not say what to do", f)
		}
		line := strings.TrimSpace(fmt.Sprintf("%s %s %s %s", f.Tool, f.Severity, f.Keyword, f.Path))
		if f.Adapted {
			line += " adapted"
		}
		lines = append(lines, line)
	}
	return string(text), strings.Join(lines, "\n")
}

func Definition(name, schema string) tool.Definition {
	return tool.Definition{Name: name, Description: "does <it>", Parameters: json.RawMessage(schema)}
}

// With returns the schema of a closed object with one property, p.
func With(property string) string {
	return `{"type":"object","properties":{"p":` + property + `},"required":["p"],"additionalProperties":false}`
}

// Cut returns what write makes of the pieces of a text, which is cut at random places, also between
// the halves of characters. The pieces are JSON strings that consist of escapes, as a server may write them.
func Cut(random *rand.Rand, text string, write func(piece string) string) []string {
	var pieces []string
	for units := utf16.Encode([]rune(text)); len(units) > 0; {
		n := 1 + random.IntN(len(units))
		if random.IntN(2) == 0 {
			n = min(n, 1+random.IntN(3))
		}
		pieces, units = append(pieces, write(Units(units[:n]))), units[n:]
	}
	return pieces
}

// Units returns UTF-16 units as a JSON string of escapes.
func Units(units []uint16) string {
	var escaped strings.Builder
	for _, unit := range units {
		fmt.Fprintf(&escaped, `\u%04x`, unit)
	}
	return `"` + escaped.String() + `"`
}

// Mix returns the elements of queues in a random order in which each queue keeps its own.
func Mix(random *rand.Rand, queues [][]string) []string {
	var mixed []string
	for len(queues) > 0 {
		i := random.IntN(len(queues))
		mixed = append(mixed, queues[i][0])
		if queues[i] = queues[i][1:]; len(queues[i]) == 0 {
			queues = append(queues[:i], queues[i+1:]...)
		}
	}
	return mixed
}

// Transcript checks that a dialect reads and writes the conversation in testdata: weather.json and weather.sse
// are the response; definitions.json, strict.json, calls.json and results.json are the written documents.
func Transcript(t *testing.T, d dialects.Dialect, response tool.ChatResponse, records []tool.Record) {
	t.Helper()
	same := func(name string, written []byte, err error) {
		if want := Compact(t, name); err != nil || string(written) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, written, want)
		}
	}
	offered := []tool.Definition{
		{Name: "weather", Description: "The weather of the next days.",
			Parameters: json.RawMessage(
				`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1}},` +
					`"required":["city"]}`)},
		{Name: "now"},
	}
	for name, strict := range map[string]bool{"definitions.json": false, "strict.json": true} {
		written, found := Offered(t, d, strict, offered...)
		same(name, []byte(written), nil)
		for line := range strings.Lines(found) {
			if !strings.HasSuffix(strings.TrimSpace(line), " adapted") {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
	stream, pieces, err := Feed(d, string(Fixture(t, "weather.sse")))
	if shown := Lines(pieces); err != nil || shown != string(Fixture(t, "weather.pieces")) {
		t.Errorf("%v\n%s", err, shown)
	}
	whole, err := d.Response(Fixture(t, "weather.json"))
	for _, read := range []tool.ChatResponse{stream.Response(), whole} {
		if err != nil || !reflect.DeepEqual(read, response) {
			t.Errorf("%v\n%+v\nwant\n%+v", err, read, response)
		}
	}
	written, err := d.Calls(whole.ToolCalls)
	same("calls.json", written, err)
	written, err = d.Results(records)
	same("results.json", written, err)
}

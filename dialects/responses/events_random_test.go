package responses

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// batch makes the events of a random batch, as an executor streams them, and has the expected content of the mapped
// events.
type batch struct {
	random *rand.Rand
	all    []tool.Event
	calls  []tool.Call // announced to the client, in order
	asks   []tool.Approval
	text   string // of the calls, for the user
	images []string
	time   time.Time
}

func (b *batch) chance(in int) bool { return b.random.IntN(in) == 0 }

func pick[T any](b *batch, of ...T) T { return of[b.random.IntN(len(of))] }

func (b *batch) add(event tool.Event) {
	b.time = b.time.Add(time.Millisecond)
	event.Batch, event.Time = "batch", b.time
	b.all = append(b.all, event)
}

// about returns an event about a call.
func about(kind tool.EventType, p *tool.Planned) tool.Event {
	return tool.Event{Type: kind, CallID: p.CallID, Tool: p.Tool}
}

func randomBatch(random *rand.Rand) *batch {
	b := &batch{random: random, time: time.Unix(1_795_000_000, 0)}
	resumed := b.chance(4)
	var planned []tool.Planned
	for i := range random.IntN(7) {
		planned = append(planned, b.planned(i))
	}
	b.add(tool.Event{Type: pick(b, tool.BatchStarted, map[bool]tool.EventType{true: tool.BatchResumed, false: tool.BatchStarted}[resumed]), Calls: planned})
	if b.all[0].Type != tool.BatchResumed {
		resumed = false
	}
	paused := b.life(planned, resumed)
	b.add(tool.Event{Type: map[bool]tool.EventType{true: tool.BatchPaused, false: tool.BatchFinished}[paused], Totals: &tool.Totals{}})
	return b
}

func (b *batch) planned(i int) tool.Planned {
	p := tool.Planned{
		ID: pick(b, "", "call_a", "call_b", fmt.Sprint("call_", i)), CallID: fmt.Sprintf("0199-%04d", i), Tool: pick(b, "weather", "shell"),
		Type: pick(b, "", tool.FunctionCall, tool.CustomCall, tool.LocalShellCall), Arguments: pick(b, "", "oops", `{"query":"a <b> & c"}`, `{"queries":["x","y"]}`),
		Category: pick(b, "", "web_search", "file_search", "image_generation", "web"), Final: b.chance(2), Client: b.chance(3),
	}
	if p.Type == tool.LocalShellCall {
		p.Tool = tool.LocalShellCall
	}
	return p
}

// life lets the calls start, wait and emit: one emits at a time, while other calls may start.
func (b *batch) life(planned []tool.Planned, resumed bool) (paused bool) {
	var beginnings []func()
	var speakers []*tool.Planned
	begun := map[string]bool{}
	for i := range planned {
		p := &planned[i]
		waits := !b.chance(3)
		switch {
		case p.Client && waits:
			paused = true
			beginnings = append(beginnings, func() { b.announce(planned, p) })
		case waits && b.chance(3):
			paused = true
			beginnings = append(beginnings, func() { b.ask(p) })
		default:
			speakers = append(speakers, p)
			beginnings = append(beginnings, func() {
				b.add(about(tool.CallStarted, p))
				begun[p.CallID] = true
			})
		}
	}
	b.random.Shuffle(len(beginnings), func(i, j int) { beginnings[i], beginnings[j] = beginnings[j], beginnings[i] })
	b.random.Shuffle(len(speakers), func(i, j int) { speakers[i], speakers[j] = speakers[j], speakers[i] })
	begin := func() bool {
		if len(beginnings) == 0 {
			return false
		}
		beginnings[0]()
		beginnings = beginnings[1:]
		return true
	}
	for _, p := range speakers {
		for !begun[p.CallID] && begin() {
		}
		b.speech(p, resumed, func() {
			if b.chance(2) {
				begin()
			}
		})
	}
	for begin() {
	}
	return paused
}

func (b *batch) announce(planned []tool.Planned, p *tool.Planned) {
	call := tool.Call{ID: p.ID, Type: p.Type, Function: tool.Function{Name: "alias", Arguments: p.Arguments}}
	if call.ID == "" {
		call.ID = p.CallID
	}
	arguments := `{"command":["ls","-l"],"env":{}}`
	e := about(tool.CallWaiting, p)
	e.Action = &tool.Action{Type: tool.NeedsOutput, CallID: p.CallID, Call: call, Tool: p.Tool, Arguments: json.RawMessage(arguments)}
	b.add(e)
	want := tool.Call{ID: p.ID, Type: p.Type, Function: tool.Function{Name: p.Tool, Arguments: arguments}}
	same := 0
	for _, other := range planned {
		if other.ID == p.ID {
			same++
		}
	}
	if p.ID == "" || same > 1 {
		want.ID = p.CallID
	}
	switch p.Type {
	case "":
		want.Type = tool.FunctionCall
	case tool.CustomCall:
		want.Function.Arguments = p.Arguments
	}
	b.calls = append(b.calls, want)
}

func (b *batch) ask(p *tool.Planned) {
	e := about(tool.CallWaiting, p)
	e.Action = &tool.Action{Type: tool.NeedsApproval, CallID: p.CallID, Tool: p.Tool, Arguments: json.RawMessage(`{"to":"x"}`), Fingerprint: "f" + p.CallID}
	b.add(e)
	b.asks = append(b.asks, tool.Approval{CallID: p.CallID, Approve: true, Fingerprint: "f" + p.CallID})
}

// speech lets a call emit and finish.
func (b *batch) speech(p *tool.Planned, resumed bool, meanwhile func()) {
	said, shown := "", ""
	for range b.random.IntN(5) {
		if p.Client {
			break
		}
		e := about(tool.CallOutput, p)
		e.Emission = b.emission()
		b.add(e)
		if e.Emission.Type == tool.EmitText {
			said += e.Emission.Text
		}
		if e.Emission.Type == tool.EmitImage && e.Emission.Partial && p.Category == "image_generation" {
			var image string
			if json.Unmarshal(e.Emission.Data, &image) == nil {
				b.images = append(b.images, image)
			}
		}
		meanwhile()
	}
	shown = said
	e := about(tool.CallFinished, p)
	e.Record = &tool.Record{CallID: p.CallID, Result: b.result(said, &shown)}
	b.add(e)
	if p.Final && !(p.Client && resumed) {
		b.text += shown
	}
}

func (b *batch) emission() *tool.Emission {
	half := 0.5
	return pick(b,
		&tool.Emission{Type: tool.EmitText, Text: pick(b, "one ", "zwölf 🌦", "\n", "{}")},
		&tool.Emission{Type: tool.EmitProgress, Text: "searching", Fraction: &half},
		&tool.Emission{Type: tool.EmitJSON, Data: json.RawMessage(`{"n":1}`)},
		&tool.Emission{Type: tool.EmitLink, Text: "A page", Data: json.RawMessage(`"https://example.org/a"`)},
		&tool.Emission{Type: tool.EmitImage, MIMEType: "image/png", Partial: b.chance(2), Data: json.RawMessage(`"` + base64.StdEncoding.EncodeToString([]byte("png")) + `"`)},
	)
}

// result returns the result of a call that has emitted text, and appends the text that will be shown.
func (b *batch) result(said string, shown *string) tool.Result {
	if b.chance(4) {
		return tool.Result{Error: "it broke", Kind: pick(b, tool.ToolFailed, tool.Denied, tool.UnknownTool, tool.Internal, tool.Deadline)}
	}
	result := tool.Result{Success: true, Data: pick(b, nil, json.RawMessage(`[{"file_id":"f","filename":"a.txt","score":0.5,"text":"t"}]`))}
	switch b.random.IntN(4) {
	case 0:
		result.Output = said
	case 1:
		result.Output = said + "the rest"
		*shown += "the rest"
	case 2:
		result.Output = "another text"
		*shown += "another text"
	}
	return result
}

// mapped maps all events of a batch.
func mapped(t testing.TB, all []tool.Event) []dialects.Event {
	t.Helper()
	return mappedBy(t, NewEvents(EventsOptions{Model: "m"}), all)
}

func mappedBy(t testing.TB, events *Events, all []tool.Event) []dialects.Event {
	t.Helper()
	var out []dialects.Event
	for _, event := range all {
		more, err := events.Map(event)
		require.NoError(t, err, "%+v", event)
		out = append(out, more...)
	}
	return out
}

// transcribed returns events as the text of a stream.
func transcribed(t testing.TB, events []dialects.Event) string {
	t.Helper()
	var text bytes.Buffer
	for _, event := range events {
		require.NoError(t, dialects.WriteEvent(&text, event))
	}
	return text.String()
}

// TestEveryStreamIsWellFormed: the events of every batch are those that the API documents, in an order
// that it documents. A reader of the API's streams gets the calls for the client and the text for the
// user from them, from the stream and from its last event.
func TestEveryStreamIsWellFormed(t *testing.T) {
	random := rand.New(rand.NewPCG(47, 47))
	var calls, asks, texts, images int
	for range 1000 {
		b := randomBatch(random)
		written := mapped(t, b.all)
		require.NoError(t, checked(written, true), "%+v", b.all)

		stream, pieces := noerr.Get2(feed(transcribed(t, written)))(t)
		want := append([]tool.Call{}, b.calls...)
		require.Equal(t, want, stream.Response().ToolCalls)
		passed, said := dialecttest.Called(pieces), dialecttest.Said(pieces)
		require.ElementsMatch(t, want, passed)
		require.Equal(t, b.text, said)

		var last struct {
			Response json.RawMessage `json:"response"`
		}
		require.NoError(t, json.Unmarshal(written[len(written)-1].Data, &last))
		whole := noerr.Get(New().Response(last.Response))(t)
		require.Equal(t, stream.Response(), whole)

		require.Equal(t, b.asks, approved(t, last.Response))
		require.Equal(t, b.images, partialImages(t, written))
		calls, asks, texts, images = calls+len(b.calls), asks+len(b.asks), texts+len(b.text), images+len(b.images)
	}
	require.Positive(t, calls)
	require.Positive(t, asks)
	require.Positive(t, texts)
	require.Positive(t, images)
}

// approved answers all requests for approval in a response, as a client does, and returns the approvals
// read.
func approved(t testing.TB, response json.RawMessage) []tool.Approval {
	t.Helper()
	var r struct {
		Output []struct {
			Type string `json:"type"`
			ID   string `json:"id"`
		} `json:"output"`
	}
	require.NoError(t, json.Unmarshal(response, &r))
	var items []string
	for _, item := range r.Output {
		if item.Type == "mcp_approval_request" {
			items = append(items, fmt.Sprintf(`{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}`, item.ID))
		}
	}
	read := noerr.Get(New().Answers([]byte("[" + strings.Join(items, ",") + "]")))(t)
	if len(read.Approvals) == 0 {
		return nil
	}
	return read.Approvals
}

func partialImages(t testing.TB, events []dialects.Event) []string {
	t.Helper()
	var images []string
	for _, event := range events {
		if event.Name == "response.image_generation_call.partial_image" {
			var e struct {
				Image string `json:"partial_image_b64"`
			}
			require.NoError(t, json.Unmarshal(event.Data, &e))
			images = append(images, e.Image)
		}
	}
	return images
}

// TestTheCheckFindsFaults: the check of TestEveryStreamIsWellFormed fails for streams in which an
// event is missing or repeated.
func TestTheCheckFindsFaults(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 47))
	for range 100 {
		written := mapped(t, randomBatch(random).all)
		at := random.IntN(len(written))
		without := append(append([]dialects.Event{}, written[:at]...), written[at+1:]...)
		if name := written[at].Name; !strings.HasSuffix(name, "searching") && !strings.HasSuffix(name, "generating") { // a call may fail before
			require.Error(t, checked(renumbered(t, without), true), "without %s", name)
		}
		twice := append(append([]dialects.Event{}, written[:at+1]...), written[at:]...)
		require.Error(t, checked(renumbered(t, twice), true), "twice %s", written[at].Name)
		require.Error(t, checked(written[:len(written)-1], true))
		require.Error(t, checked(without, true), "the numbers have a gap")
	}
}

// renumbered gives events the sequence numbers of their places, so that no gap gives a fault away.
func renumbered(t testing.TB, events []dialects.Event) []dialects.Event {
	t.Helper()
	var out []dialects.Event
	for i, event := range events {
		body := noerr.Decode[map[string]json.RawMessage](t, event.Data)
		body["sequence_number"] = json.RawMessage(fmt.Sprint(i))
		data := noerr.Get(json.Marshal(body))(t)
		out = append(out, dialects.Event{Name: event.Name, Data: data})
	}
	return out
}

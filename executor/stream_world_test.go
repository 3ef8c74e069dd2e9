package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// talkWorld implements tools that emit, and records the emissions of each call.
type talkWorld struct {
	mu    sync.Mutex
	said  map[string][]saying // by call id
	stops []func()            // each ends one of the batches; a call may stop its own
}

// saying is an emission that the host took, and between which times it did.
type saying struct {
	emission      tool.Emission
	before, after time.Time
}

func newTalkWorld() *talkWorld { return &talkWorld{said: map[string][]saying{}} }

// tools returns tools that do what their argument "script" says, one letter after the other:
//
//	t T   say a short or a long text
//	j     say JSON
//	p     tell progress
//	i I   show a partial image, or a whole one
//	b     make an invalid emission
//	z     take a while
//	c     call another tool that says a text, if it may
//	s     stop the batch
//	f x g d h   fail, panic, exit, trap, hang
func (w *talkWorld) tools(t testing.TB) []registry.Tool {
	nested := fields{"tools": []string{"live", "whisper"}}
	return []registry.Tool{
		newFake(t, "talk", readOnly, w.talk),
		newFake(t, "live", behaves(fields{"read_only": true, "cache": "off"}), w.talk),
		newFake(t, "whisper", behaves(fields{"read_only": true, "hidden": true}), w.talk),
		newFake(t, "relay", fields{"permissions": nested, "behavior": fields{"read_only": true}}, w.talk),
		newFake(t, "write", nil, w.talk),
		newFake(t, "secretly", behaves(fields{"hidden": true}), w.talk),
		newFake(t, "asks", behaves(fields{"destructive": true}), w.talk),
		newFake(t, "client_read", fields{"execution": "client", "module": nil, "behavior": fields{"read_only": true}}, w.talk),
		newFake(t, "client_write", fields{"execution": "client", "module": nil}, w.talk),
	}
}

// talking returns a call of a tool that talks.
func talking(id, name, script string) tool.Call {
	return newCall(id, name, fmt.Sprintf(`{"script":%q}`, script))
}

func (w *talkWorld) talk(ctx context.Context, i tool.Invocation) (tool.Outcome, error) {
	for at, letter := range argument(i, "script") {
		switch letter {
		case 'z':
			time.Sleep(50 * time.Microsecond)
		case 'c':
			name := []string{"live", "whisper"}[at%2]
			_, _ = i.Host.Call(ctx, talking("", name, "tpt"))
		case 's':
			w.stop(argument(i, "batch"))
		case 'f':
			return tool.Outcome{Result: tool.Result{Error: "failed"}}, nil
		case 'x':
			panic("a tool's panic")
		case 'g':
			runtime.Goexit()
		case 'd':
			return tool.Outcome{}, &tool.Error{Kind: tool.Trap, Message: "trapped"}
		case 'h':
			<-ctx.Done()
			return tool.Outcome{}, ctx.Err()
		default:
			w.say(i, emissionOf(letter, fmt.Sprint(at)))
		}
	}
	return succeed("done"), nil
}

// emissionOf returns what a letter of a script says at its place. No two of a call are the same.
func emissionOf(letter rune, at string) tool.Emission {
	switch letter {
	case 't':
		return tool.Emission{Type: tool.EmitText, Text: at}
	case 'T':
		return tool.Emission{Type: tool.EmitText, Text: at + strings.Repeat(".", 2000)}
	case 'j':
		return tool.Emission{Type: tool.EmitJSON, Data: json.RawMessage(at)}
	case 'p':
		return tool.Emission{Type: tool.EmitProgress, Text: at}
	case 'i', 'I':
		return tool.Emission{Type: tool.EmitImage, Text: at, Data: json.RawMessage(`"AAAA"`), MIMEType: "image/png", Partial: letter == 'i'}
	}
	return tool.Emission{Type: "nonsense"}
}

func (w *talkWorld) say(i tool.Invocation, emission tool.Emission) {
	said := saying{emission: emission, before: time.Now()}
	if i.Host.Emit(emission) != nil {
		return
	}
	said.after = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said[i.CallID] = append(w.said[i.CallID], said)
}

// stopping makes a batch one that a call can stop, and returns under which number.
func (w *talkWorld) stopping(stop func()) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stops = append(w.stops, stop)
	return fmt.Sprint(len(w.stops) - 1)
}

func (w *talkWorld) stop(batch string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var number int
	if _, err := fmt.Sscan(batch, &number); err == nil && number < len(w.stops) {
		w.stops[number]()
	}
}

// saidBy returns the emissions of a call.
func (w *talkWorld) saidBy(call string) []saying {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said[call]
}

package tool

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseCalls(t *testing.T) {
	const one = `{"id":"call_1","type":"function","function":{"name":"add","arguments":"{\"a\":1}"}}`
	const two = `{"id":"call_2","function":{"name":"list"}}`
	call1 := Call{ID: "call_1", Type: "function", Function: Function{Name: "add", Arguments: `{"a":1}`}}
	call2 := Call{ID: "call_2", Type: "function", Function: Function{Name: "list"}}
	cases := []struct {
		name, document string
		want           []Call
		fault          string
	}{
		{name: "one call", document: one, want: []Call{call1}},
		{name: "an array", document: "[" + one + "," + two + "]", want: []Call{call1, call2}},
		{name: "lines", document: one + "\n" + two + "\n", want: []Call{call1, call2}},
		{name: "a message", document: `{"role":"assistant","content":null,"tool_calls":[` + one + `]}`, want: []Call{call1}},
		{name: "a completion", document: `{"id":"x","choices":[{"message":{"tool_calls":[` + one + `,` + two + `]}}]}`, want: []Call{call1, call2}},
		{name: "a completion of two choices", document: `{"choices":[{"message":{"tool_calls":[` + one + `]}},{"message":{"tool_calls":[` + two + `]}}]}`, want: []Call{call1, call2}},
		{name: "arguments as an object", document: `{"id":"call_1","function":{"name":"add","arguments":{"a":1}}}`, want: []Call{call1}},
		{name: "a choice without calls beside one with", document: `[{"message":{"content":"hello"}},` + two + `]`, want: []Call{call2}},
		{name: "invalid arguments are passed on", document: `{"id":"call_1","function":{"name":"add","arguments":"{"}}`,
			want: []Call{{ID: "call_1", Type: "function", Function: Function{Name: "add", Arguments: "{"}}}},
		{name: "nothing", document: "", fault: "no tool calls"},
		{name: "no calls", document: `{"role":"assistant","content":"hello","tool_calls":null}`, fault: "no tool calls"},
		{name: "not JSON", document: "hello", fault: "tool calls: document 1: not JSON: want a value, not 'h', at byte 0"},
		{name: "cut off", document: one + "\n" + one[:20], fault: "document 2: not JSON: it ends too early, at byte 104 (line 2, column 21)"},
		{name: "a fault in a line", document: one + "\n" + `{"id":"call_2",}`, fault: "document 2: not JSON: want a name in double quotes, not '}', at byte 99 (line 2, column 16)"},
		{name: "no call beside one", document: "[" + one + `,{"id":"call_2","funtion":{"name":"list"}}]`,
			fault: `document 1: element 1: want a tool call, a message with tool_calls or a chat completion, not an object with "id", "funtion"`},
		{name: "no call behind one", document: one + "\n" + `{"type":"function","id":"call_2","name":"list","arguments":"{}","status":"completed"}`, fault: `document 2: want a tool call, a message with tool_calls or a chat completion, not an object with "type", "id", "name", "arguments", …`},
		{name: "no call in a message", document: `{"role":"assistant","tool_calls":[` + one + `,{}]}`, fault: "element 1: want a tool call, a message with tool_calls or a chat completion, not an empty object"},
		{name: "null beside a call", document: "[" + one + ",null]", fault: "element 1: want a tool call, a message with tool_calls or a chat completion, not null"},
		{name: "a message without calls beside one with", document: `[{"role":"user","content":"add"},{"role":"assistant","tool_calls":[` + one + `]}]`, want: []Call{call1}},
		{name: "another type", document: `{"id":"call_1","type":"retrieval","function":{"name":"add"}}`, fault: `"retrieval"`},
		{name: "a custom call, as chat completions have it", document: `{"role":"assistant","tool_calls":[` + one + `,{"id":"call_3","type":"custom","custom":{"name":"patch","input":"--- a\n"}}]}`,
			want: []Call{call1, {ID: "call_3", Type: CustomCall, Function: Function{Name: "patch", Arguments: "--- a\n"}}}},
		{name: "of each type, with a signature", document: `[{"id":"1","type":"custom","function":{"name":"patch","arguments":"x"}},{"id":"2","type":"local_shell","signature":"s","function":{"name":"local_shell","arguments":"{}"}}]`,
			want: []Call{{ID: "1", Type: CustomCall, Function: Function{Name: "patch", Arguments: "x"}}, {ID: "2", Type: LocalShellCall, Signature: "s", Function: Function{Name: "local_shell", Arguments: "{}"}}}},
		{name: "neither function nor custom", document: `[{"id":"call_1","type":"custom","custom":{"input":"x"}}]`, fault: "no function name"},
		{name: "no name", document: `{"id":"call_1","function":{"arguments":"{}"}}`, fault: "no function name"},
		{name: "a number", document: "1", fault: "want a tool call, a message with tool_calls or a chat completion: it is a JSON number; want an object"},
		{name: "an id that is a number", document: `{"id":1,"method":"tools/call"}`, fault: "chat completion: id is a JSON number; want a string"},
		{name: "a name that is a number", document: `{"id":"a","function":{"name":1}}`, fault: "chat completion: function.name is a JSON number; want a string"},
		{name: "a flag that is a text", document: `{"id":"a","incomplete":"no","function":{"name":"f"}}`, fault: "chat completion: incomplete is a JSON string; want true or false"},
		{name: "nested without end", document: strings.Repeat("[", 5000) + strings.Repeat("]", 5000), fault: "nested deeper"},
		{name: "a fault in the second", document: "[" + one + ",1]", fault: "element 1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			calls, err := ParseCalls([]byte(c.document))
			if c.fault != "" {
				assert.ErrorContains(t, err, c.fault)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, calls)
		})
	}
}

func FuzzParseCalls(f *testing.F) {
	f.Add(`{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"b","arguments":"{}"}}]}}]}`)
	f.Add(strings.Repeat("[", 1000))
	f.Fuzz(func(t *testing.T, document string) {
		calls, err := ParseCalls([]byte(document))
		if err != nil {
			require.Empty(t, calls)
			return
		}
		require.NotEmpty(t, calls)
		for _, call := range calls {
			require.NotEmpty(t, call.Function.Name)
			require.Equal(t, "function", call.Type)
		}
	})
}

package tool_test

import (
	"encoding/json"
	"fmt"

	"github.com/caisson-run/caisson/tool"
)

// ParseCalls reads the calls of OpenAI's chat completions, and lists of calls; package dialects reads other formats.
func ExampleParseCalls() {
	calls, err := tool.ParseCalls([]byte(`{"role": "assistant", "tool_calls": [
		{"id": "call_1", "type": "function", "function": {"name": "calculator", "arguments": "{\"expression\": \"6 * 7\"}"}}
	]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(calls[0].ID, calls[0].Function.Name, calls[0].Function.Arguments)
	// Output: call_1 calculator {"expression": "6 * 7"}
}

// Arguments keep the order and the text of their members.
func ExampleParseArguments() {
	arguments, err := tool.ParseArguments(`{"b": 1.50, "a": 12345678901234567890}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	b, _ := arguments.Get("b")
	fmt.Println(arguments.Names(), string(b))
	text, err := json.Marshal(arguments.With("b", json.RawMessage("2")))
	fmt.Println(string(text), err)
	_, err = tool.ParseArguments(`{"a": 1, "a": 2}`)
	fmt.Println(err)
	// Output:
	// [b a] 1.50
	// {"b":2,"a":12345678901234567890} <nil>
	// invalid arguments: the name "a" occurs twice in one object; give it once
}

// Shown makes text safe to print.
func ExampleShown() {
	fmt.Println(tool.Shown("a\x1b[31mb", 100))
	fmt.Println(tool.Shown("a long text", 6))
	// Output:
	// a�[31mb
	// a long…
}

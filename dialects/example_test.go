package dialects_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/anthropic"
	"github.com/caisson-run/caisson/dialects/gemini"
	"github.com/caisson-run/caisson/dialects/mcp"
	"github.com/caisson-run/caisson/dialects/openai"
	"github.com/caisson-run/caisson/tool"
)

func ExampleDialect_definitions() {
	weather := tool.Definition{Name: "get_weather", Description: "Look up the weather.", Parameters: []byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)}
	for _, dialect := range []dialects.Dialect{openai.New(), anthropic.New(), gemini.New(), mcp.New()} {
		definitions, findings, err := dialect.Definitions([]tool.Definition{weather}, dialects.DefinitionOptions{})
		fmt.Println(dialect.Name(), len(findings), err)
		fmt.Println(string(definitions))
	}
	// Output:
	// openai 0 <nil>
	// [{"type":"function","function":{"name":"get_weather","description":"Look up the weather.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}]
	// anthropic 0 <nil>
	// [{"name":"get_weather","description":"Look up the weather.","input_schema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]
	// gemini 0 <nil>
	// [{"functionDeclarations":[{"name":"get_weather","description":"Look up the weather.","parametersJsonSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]}]
	// mcp 0 <nil>
	// [{"name":"get_weather","description":"Look up the weather.","inputSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]
}

func ExampleDialect_response() {
	response, err := anthropic.New().Response([]byte(`{"type":"message","role":"assistant","model":"m","stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2},
		"content":[{"type":"text","text":"Let me look."},{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{"city":"Oslo"}}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(response.Content)
	for _, call := range response.ToolCalls {
		fmt.Println(call.ID, call.Function.Name, call.Function.Arguments)
	}
	// Output:
	// Let me look.
	// toolu_1 get_weather {"city":"Oslo"}
}

func ExampleDialect_results() {
	record := tool.Record{Call: tool.Call{ID: "call_1", Function: tool.Function{Name: "get_weather"}}, Result: tool.Result{Success: true, Output: "-3 °C"}}
	results, err := anthropic.New().Results([]tool.Record{record})
	fmt.Println(string(results), err)
	// Output: [{"type":"tool_result","tool_use_id":"call_1","content":[{"type":"text","text":"-3 °C"}]}] <nil>
}

func ExampleStream() {
	stream := openai.New().Stream()
	for event, err := range dialects.Events(strings.NewReader(`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"}}]}

data: {"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}

data: [DONE]

`)) {
		if err != nil {
			fmt.Println(err)
			return
		}
		pieces, err := stream.Event(event.Name, event.Data)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, piece := range pieces {
			fmt.Printf("%q\n", piece.Content)
		}
	}
	_, err := stream.End()
	fmt.Println(stream.Response().Content, err)
	// Output:
	// "Hel"
	// "lo"
	// Hello <nil>
}

func ExampleWriteEvent() {
	_ = dialects.WriteEvent(os.Stdout, dialects.Event{Name: "response.created", Data: []byte(`{"type":"response.created"}`)})
	// Output:
	// event: response.created
	// data: {"type":"response.created"}
}

package mcp_test

import (
	"fmt"

	"github.com/caisson-run/caisson/dialects/mcp"
	"github.com/caisson-run/caisson/tool"
)

func ExampleRequest() {
	request, err := mcp.Request(tool.Call{ID: "call_1", Function: tool.Function{Name: "get_weather", Arguments: `{"city":"Oslo"}`}})
	fmt.Println(string(request), err)
	// Output: {"jsonrpc":"2.0","id":"call_1","method":"tools/call","params":{"name":"get_weather","arguments":{"city":"Oslo"}}} <nil>
}

func ExampleAnswer() {
	id, result, err := mcp.Answer([]byte(`{"jsonrpc":"2.0","id":"call_1","result":{"content":[{"type":"text","text":"-3 °C"}]}}`))
	fmt.Println(id, result.Success, result.Output, err)
	// Output: call_1 true -3 °C <nil>
}

func ExampleOffered() {
	tools, next, err := mcp.Offered([]byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"get_weather","inputSchema":{"type":"object"}}],"nextCursor":"page 2"}}`))
	fmt.Println(tools[0].Name, next, err)
	// Output: get_weather page 2 <nil>
}

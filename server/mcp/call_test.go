//lint:file-ignore SA1019 the latest revision keeps log messages for a year

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/server/mcp"
	"github.com/caisson-run/caisson/tool"
)

func TestResults(t *testing.T) {
	png := []byte("\x89PNG")
	results := map[string]tool.Result{
		"text":       {Success: true, Output: "hello"},
		"structured": {Success: true, Output: "1 hit", Data: json.RawMessage(`{"hits":[12345678901234567890],"b":1,"a":2}`)},
		"only_data":  {Success: true, Data: json.RawMessage(`{"n":1}`)},
		"parts": {Success: true, Output: "see", Content: []tool.Content{
			{Type: "image", Data: png, MIMEType: "image/png"}, {Type: "file", Text: "notes", URL: "test://notes", MIMEType: "text/plain"},
			{Type: "link", URL: "https://example.com", Name: "Example"}, {Type: "file", Data: []byte("RIFF"), MIMEType: "audio/wav"},
		}},
		"failing": {Error: "there is no such city", Output: "looked in 3 places"},
	}
	overAll(t, func(t *testing.T, connect func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession) {
		w := newWorld(t, mcp.Options{})
		for name, result := range results {
			if !result.Success {
				result.Kind = tool.ToolFailed
			}
			require.NoError(t, w.host.Registry().Register("", newFake(t, name, nil, says(result))))
		}
		c := connect(t, w, nil)
		require.Eventually(t, func() bool { got, _ := names(t, c); return len(got) == 1+len(results) }, 10*time.Second, time.Millisecond)

		assert.Equal(t, "hello", text(t, call(t, c, "text", nil), 0))

		structured := call(t, c, "structured", nil)
		assert.Equal(t, "1 hit", text(t, structured, 0))
		assert.Len(t, structured.Content, 1)
		assert.NotNil(t, structured.StructuredContent)

		data := call(t, c, "only_data", nil)
		assert.JSONEq(t, `{"n":1}`, text(t, data, 0))
		assert.Equal(t, map[string]any{"n": 1.0}, data.StructuredContent)

		parts := call(t, c, "parts", nil)
		require.Len(t, parts.Content, 5)
		assert.Equal(t, &sdk.ImageContent{Data: png, MIMEType: "image/png"}, parts.Content[1])
		assert.Equal(t, &sdk.ResourceContents{URI: "test://notes", MIMEType: "text/plain", Text: "notes"}, parts.Content[2].(*sdk.EmbeddedResource).Resource)
		assert.Equal(t, "https://example.com", parts.Content[3].(*sdk.ResourceLink).URI)
		assert.Equal(t, &sdk.AudioContent{Data: []byte("RIFF"), MIMEType: "audio/wav"}, parts.Content[4])

		failing := call(t, c, "failing", nil)
		assert.True(t, failing.IsError)
		assert.Equal(t, "tool_failed: there is no such city", text(t, failing, 0))
		assert.Equal(t, "looked in 3 places", text(t, failing, 1))
	})
}

// TestArguments: the executor gets the text of the arguments, with all digits, and its rules hold.
func TestArguments(t *testing.T) {
	overAll(t, func(t *testing.T, connect func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession) {
		echo := newFake(t, "echo", without(measured, "result"), func(_ context.Context, invocation tool.Invocation) tool.Result {
			given, _ := invocation.Arguments.MarshalJSON()
			return tool.Result{Success: true, Output: string(given)}
		})
		c := connect(t, newWorld(t, mcp.Options{}, echo), nil)
		for given, want := range map[string]string{
			`{"z":12345678901234567890.10}`: `{"z":12345678901234567890.10}`,
			`{"z":"5"}`:                     `{"z":5}`, // repaired
		} {
			result := call(t, c, "echo", json.RawMessage(given))
			assert.Equal(t, want, text(t, result, 0))
		}
		assert.Equal(t, `{"z":1}`, text(t, call(t, c, "gauge", json.RawMessage(`{"z":1}`)), 0), "by its alias")
		for given, want := range map[string]string{`{}`: "z", `{"z":"many"}`: "z"} {
			result := call(t, c, "echo", json.RawMessage(given))
			assert.True(t, result.IsError)
			assert.Contains(t, text(t, result, 0), "invalid_arguments: ")
			assert.Contains(t, text(t, result, 0), want)
		}
	})
}

// TestUnknownTools are errors of the protocol, which name tools with a similar name.
func TestUnknownTools(t *testing.T) {
	overAll(t, func(t *testing.T, connect func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession) {
		c := connect(t, newWorld(t, mcp.Options{}), nil)
		_, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask_usr"})
		assertCode(t, jsonrpc.CodeInvalidParams, err)
		assert.ErrorContains(t, err, "ask_user")
	})
}

// endless is a tool that runs until it is cancelled, and says so.
type endless struct {
	*fake
	began, ended chan struct{}
}

func newEndless(t testing.TB) endless {
	e := endless{began: make(chan struct{}, 64), ended: make(chan struct{}, 64)}
	e.fake = newFake(t, "endless", fields{"limits": fields{"timeout": "1h"}}, func(ctx context.Context, _ tool.Invocation) tool.Result {
		e.began <- struct{}{}
		<-ctx.Done()
		e.ended <- struct{}{}
		return tool.Result{Error: "it was cancelled", Kind: tool.Cancelled}
	})
	return e
}

func receives(t testing.TB, from <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-from:
	case <-time.After(20 * time.Second):
		require.Fail(t, what)
	}
}

// TestCancel: a call that its client cancels is cancelled, and nothing else is.
func TestCancel(t *testing.T) {
	overAll(t, func(t *testing.T, connect func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession) {
		e := newEndless(t)
		w := newWorld(t, mcp.Options{}, e.fake)
		c := connect(t, w, nil)
		ctx, cancel := context.WithCancel(t.Context())
		called := make(chan error, 1)
		go func() {
			_, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "endless"})
			called <- err
		}()
		receives(t, e.began, "it does not run")
		cancel()
		receives(t, e.ended, "it was not cancelled")
		require.ErrorIs(t, <-called, context.Canceled)
		require.NoError(t, noerr.Error(c.ListTools(t.Context(), nil)), "the connection is still good")
	})
}

// TestClientsThatGo: a client that goes away cancels its calls.
func TestClientsThatGo(t *testing.T) {
	overAll(t, func(t *testing.T, connect func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession) {
		e := newEndless(t)
		c := connect(t, newWorld(t, mcp.Options{}, e.fake), nil)
		called := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(called)
			_, _ = c.CallTool(ctx, &sdk.CallToolParams{Name: "endless"})
		}()
		receives(t, e.began, "it does not run")
		go func() { _ = c.Close() }()
		time.AfterFunc(100*time.Millisecond, cancel)
		receives(t, e.ended, "it was not cancelled")
		<-called
	})
}

// TestCloseTellsClients: when the server is closed, calls that run are cancelled, and their clients are told.
func TestCloseTellsClients(t *testing.T) {
	overAll(t, func(t *testing.T, connect func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession) {
		e := newEndless(t)
		w := newWorld(t, mcp.Options{}, e.fake)
		c := connect(t, w, nil)
		results := make(chan *sdk.CallToolResult, 1)
		go func() {
			result, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "endless"})
			assert.NoError(t, err)
			results <- result
		}()
		receives(t, e.began, "it does not run")
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		require.NoError(t, w.server.Close(ctx))
		result := <-results
		require.NotNil(t, result)
		assert.True(t, result.IsError)
		assert.Contains(t, text(t, result, 0), "cancelled")
	})
}

// TestProgress: what a call streams arrives before its result: progress that increases, and text as log messages.
func TestProgress(t *testing.T) {
	half, most := 0.5, 0.9
	emissions := []tool.Emission{
		{Type: tool.EmitProgress, Text: "looking"},
		{Type: tool.EmitProgress, Fraction: &half, Text: "half of it"},
		{Type: tool.EmitText, Text: "a line\n"},
		{Type: tool.EmitProgress, Text: "still there"},
		{Type: tool.EmitProgress, Fraction: &half}, // says nothing new
		{Type: tool.EmitLink, Text: "Example", Data: json.RawMessage(`"https://example.com/"`)},
		{Type: tool.EmitProgress, Fraction: &most},
	}
	overAll(t, func(t *testing.T, connect func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession) {
		arrived := make(chan struct{}, 16)
		w := newWorld(t, mcp.Options{}, newFake(t, "slow", nil, func(_ context.Context, invocation tool.Invocation) tool.Result {
			for _, e := range emissions {
				assert.NoError(t, invocation.Host.Emit(e))
				if e.Type != tool.EmitProgress || e.Text != "" || *e.Fraction != half {
					receives(t, arrived, "it was not told") // newer progress replaces progress that was not read
				}
			}
			return tool.Result{Success: true, Output: "done"}
		}))
		var mu sync.Mutex
		var said []sdk.ProgressNotificationParams
		var logged []any
		c := connect(t, w, &sdk.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
				mu.Lock()
				defer mu.Unlock()
				said = append(said, *r.Params)
				arrived <- struct{}{}
			},
			LoggingMessageHandler: func(_ context.Context, r *sdk.LoggingMessageRequest) {
				mu.Lock()
				defer mu.Unlock()
				logged = append(logged, r.Params.Logger, r.Params.Data)
				arrived <- struct{}{}
			},
		})
		params := &sdk.CallToolParams{Name: "slow", Meta: sdk.Meta{sdk.MetaKeyLogLevel: "info"}}
		params.SetProgressToken("token")
		if c.InitializeResult().ProtocolVersion < "2026" {
			require.NoError(t, c.SetLoggingLevel(t.Context(), &sdk.SetLoggingLevelParams{Level: "info"}))
		}
		result := noerr.Get(c.CallTool(t.Context(), params))(t)
		assert.Equal(t, "done", text(t, result, 0))
		require.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(said) >= 5 && len(logged) >= 2
		}, 10*time.Second, time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		var messages []string
		last := -1.0
		for _, p := range said {
			assert.Equal(t, "token", p.ProgressToken)
			assert.Greater(t, p.Progress, last)
			last = p.Progress
			messages = append(messages, p.Message)
		}
		assert.Equal(t, []string{"looking", "half of it", "still there", "Example https://example.com/", ""}, messages)
		assert.Equal(t, 90.0, last)
		assert.Equal(t, []any{"slow", "a line\n"}, logged)
	})
}

// TestReadOn: the rest of a result that was cut can be read, page by page, by the session that has it and by no
// other.
func TestReadOn(t *testing.T) {
	whole := strings.Repeat("0123456789", 40_000)
	overAll(t, func(t *testing.T, connect func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession) {
		w := newWorld(t, mcp.Options{}, newFake(t, "long", nil, says(tool.Result{Success: true, Output: whole})))
		c := connect(t, w, nil)
		result := call(t, c, "long", nil)
		shown := text(t, result, 0)
		require.Less(t, len(shown), 2000)
		require.Len(t, result.Content, 2)
		next := result.Content[1].(*sdk.ResourceLink).URI
		link := noerr.Get(url.Parse(next))(t)
		var kept int
		noerr.Get(fmt.Sscanf(link.Query().Get("from"), "%d", &kept))(t)
		read, pages := shown[:kept], 0
		for next != "" {
			page := noerr.Get(c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: next}))(t)
			require.Len(t, page.Contents, 1)
			read += page.Contents[0].Text
			assert.EqualValues(t, len(whole), page.Contents[0].Meta["caisson/total"])
			next, _ = page.Contents[0].Meta["caisson/next"].(string)
			pages++
		}
		assert.Equal(t, whole, read)
		assert.Equal(t, 2, pages)

		templates := noerr.Get(c.ListResourceTemplates(t.Context(), nil))(t)
		require.Len(t, templates.ResourceTemplates, 1)

		first := result.Content[1].(*sdk.ResourceLink).URI
		for _, wrong := range []string{"caisson://output/none", "caisson://output/none?from=1", strings.Split(first, "?")[0] + "?from=-1", strings.Split(first, "?")[0] + "?from=x", "file:///etc/passwd"} {
			_, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: wrong})
			assertCode(t, jsonrpc.CodeInvalidParams, err)
		}
	})
}

// TestLongData: a tool with a schema of results has structured content however long it is, since clients refuse
// results without. The text for the model is cut all the same.
func TestLongData(t *testing.T) {
	overAll(t, func(t *testing.T, connect func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession) {
		data := noerr.Get(json.Marshal(map[string]string{"value": strings.Repeat("x", 5000)}))(t)
		result := tool.Result{Success: true, Output: strings.Repeat("y", 5000), Data: data}
		w := newWorld(t, mcp.Options{}, newFake(t, "typed", fields{"result": fields{"type": "object"}}, says(result)), newFake(t, "free", nil, says(result)))
		c := connect(t, w, nil)
		typed := call(t, c, "typed", nil)
		assert.Len(t, typed.StructuredContent.(map[string]any)["value"], 5000)
		assert.Less(t, len(text(t, typed, 0)), 2000)
		assert.Len(t, typed.Content, 2, "a text, and a link to the rest of it")
		free := call(t, c, "free", nil)
		assert.Nil(t, free.StructuredContent)
		assert.Len(t, free.Content, 3, "the data has a link, too")
	})
}

// TestDigits: numbers in structured content have the digits that the tool wrote, and members stay in order.
func TestDigits(t *testing.T) {
	w := newWorld(t, mcp.Options{}, newFake(t, "exact", nil, says(tool.Result{Success: true, Output: "x", Data: json.RawMessage(`{"b":12345678901234567890.10,"a":1e3}`)})))
	_, out, _ := post(t, w, w.caller, http.MethodPost,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"exact","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "exact"})
	assert.Contains(t, out, `"structuredContent":{"b":12345678901234567890.10,"a":1e3}`)
}

package openaitest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	chat "github.com/caisson-run/caisson/dialects/openai"
	"github.com/caisson-run/caisson/tool"
)

// transcripts returns the streamed answers that tests of this project play, by name.
func transcripts(t *testing.T) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for _, pattern := range []string{"../testdata/*/*.sse", "../../../dialects/openai/testdata/*.sse"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			found[filepath.ToSlash(file)] = text
		}
	}
	return found
}

// TestStreamsAreReadAlike: the client and our decoder find the same words and calls in the streams of the
// scripted endpoint.
func TestStreamsAreReadAlike(t *testing.T) {
	for name, transcript := range transcripts(t) {
		t.Run(name, func(t *testing.T) {
			want, err := ours(transcript)
			theirs := theirs(t, transcript)
			if name == "../testdata/broken/1.sse" {
				require.ErrorContains(t, err, "broke off")
				assert.Empty(t, theirs.FinishReason, "the client leaves it to its user to see that")
				return
			}
			require.NoError(t, err)
			if len(want.ToolCalls) > 0 {
				assert.Equal(t, tool.FinishToolCalls, want.FinishReason)
			}
			if split.MatchString(theirs.Content) {
				want.Content = astral.ReplaceAllString(want.Content, "\ufffd\ufffd")
			}
			assert.Equal(t, want, theirs)
		})
	}
}

// A character that is two escapes in JSON, in two pieces, is lost to the client; we put it together.
var (
	split  = regexp.MustCompile("\ufffd\ufffd")
	astral = regexp.MustCompile(`[\x{10000}-\x{10ffff}]`)
)

func ours(transcript []byte) (tool.ChatResponse, error) {
	stream := chat.New().Stream()
	for event, err := range dialects.Events(bytes.NewReader(transcript)) {
		if err != nil {
			return tool.ChatResponse{}, err
		}
		if _, err := stream.Event(event.Name, event.Data); err != nil {
			return tool.ChatResponse{}, err
		}
	}
	_, err := stream.End()
	return stream.Response(), err
}

// serve answers whatever it is asked with a stream.
func serve(transcript []byte) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(transcript)
	}))
}

// theirs has the client ask an endpoint that plays the transcript.
func theirs(t *testing.T, transcript []byte) tool.ChatResponse {
	t.Helper()
	server := serve(transcript)
	defer server.Close()
	client := openai.NewClient(option.WithBaseURL(server.URL+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
	stream := client.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{
		Model: "model-1", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("What is a caisson?")},
	})
	var whole openai.ChatCompletionAccumulator
	for stream.Next() {
		require.True(t, whole.AddChunk(stream.Current()))
	}
	require.NoError(t, stream.Err())
	require.Len(t, whole.Choices, 1)
	chosen := whole.Choices[0]
	response := tool.ChatResponse{
		ID: whole.ID, Model: whole.Model, Content: chosen.Message.Content, FinishReason: tool.FinishReason(chosen.FinishReason), ToolCalls: []tool.Call{},
		Usage: tool.ChatUsage{PromptTokens: whole.Usage.PromptTokens, CompletionTokens: whole.Usage.CompletionTokens, TotalTokens: whole.Usage.TotalTokens},
	}
	for _, call := range chosen.Message.ToolCalls {
		response.ToolCalls = append(response.ToolCalls, tool.Call{ID: call.ID, Type: string(call.Type), Function: tool.Function{Name: call.Function.Name, Arguments: call.Function.Arguments}})
	}
	return response
}

// TestRequestsAreTheirs: the requests of this example's agent have no member that the client does not
// know.
func TestRequestsAreTheirs(t *testing.T) {
	files, err := filepath.Glob("../testdata/*/requests.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		decoder := json.NewDecoder(bytes.NewReader(text))
		for decoder.More() {
			var request map[string]json.RawMessage
			require.NoError(t, decoder.Decode(&request))
			delete(request, "tools")  // which are only names there
			delete(request, "stream") // which the client adds by itself
			body, err := json.Marshal(request)
			require.NoError(t, err)
			accepted[openai.ChatCompletionNewParams](t, body)
		}
	}
}

func TestChatDefinitionsAreTheirs(t *testing.T) {
	for _, options := range []dialects.DefinitionOptions{{}, {Strict: true}} {
		definitions, _, err := chat.New().Definitions(definitions(t), options)
		require.NoError(t, err)
		for _, offered := range accepted[[]openai.ChatCompletionToolUnionParam](t, definitions) {
			assert.True(t, offered.OfFunction != nil || offered.OfCustom != nil)
		}
	}
}

func TestChatCallsAndResultsAreTheirs(t *testing.T) {
	results, err := chat.New().Results(records())
	require.NoError(t, err)
	for i, message := range accepted[[]openai.ChatCompletionMessageParamUnion](t, results) {
		require.NotNil(t, message.OfTool)
		assert.Equal(t, records()[i].ID, message.OfTool.ToolCallID)
	}
	calls, err := chat.New().Calls(calls())
	require.NoError(t, err)
	shown := accepted[[]openai.ChatCompletionMessageToolCallUnionParam](t, calls)
	require.Len(t, shown, 3)
	assert.Equal(t, "weather", shown[0].OfFunction.Function.Name)
	assert.Equal(t, "*** Begin", shown[1].OfCustom.Custom.Input)
}

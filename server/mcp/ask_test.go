package mcp_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/mcp"
	"github.com/caisson-run/caisson/tool"
)

// newWipe is a destructive tool that counts its calls.
func newWipe(t testing.TB) (*fake, *atomic.Int32) {
	var ran atomic.Int32
	return newFake(t, "wipe", fields{"behavior": fields{"destructive": true}, "parameters": fields{"type": "object", "properties": fields{"path": fields{"type": "string"}}}},
		func(context.Context, tool.Invocation) tool.Result {
			ran.Add(1)
			return tool.Result{Success: true, Output: "wiped"}
		}), &ran
}

// answers is a client whose user answers every question alike, and keeps the last one.
func answers(asked *atomic.Pointer[sdk.ElicitParams], answer *sdk.ElicitResult) *sdk.ClientOptions {
	return &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		asked.Store(r.Params)
		return answer, nil
	}}
}

// TestApprovals: a destructive call runs if the user says yes, and in no other case.
func TestApprovals(t *testing.T) {
	for name, test := range map[string]struct {
		answer *sdk.ElicitResult // nil if the client offers no elicitation
		want   string
		ran    int32
	}{
		"yes":          {&sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, "wiped", 1},
		"no":           {&sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": false}}, "the user declined", 0},
		"decline":      {&sdk.ElicitResult{Action: "decline"}, "the user declined", 0},
		"cancel":       {&sdk.ElicitResult{Action: "cancel"}, "the user did not answer", 0},
		"empty accept": {&sdk.ElicitResult{Action: "accept"}, "the user declined", 0},
		"nobody":       {nil, "this client cannot ask its user", 0},
	} {
		t.Run(name, func(t *testing.T) {
			overAll(t, func(t *testing.T, connect func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession) {
				wipe, ran := newWipe(t)
				var asked atomic.Pointer[sdk.ElicitParams]
				var options *sdk.ClientOptions
				if test.answer != nil {
					options = answers(&asked, test.answer)
				}
				c := connect(t, newWorld(t, mcp.Options{}, wipe), options)
				result := call(t, c, "wipe", map[string]any{"path": "a\u202eb"})
				assert.Contains(t, text(t, result, 0), test.want)
				assert.Equal(t, test.ran, ran.Load())
				assert.Equal(t, test.ran == 0, result.IsError)
				if test.answer != nil {
					message := asked.Load().Message
					assert.Contains(t, message, "wipe")
					assert.Contains(t, message, `{"path":"a`)
					assert.NotContains(t, message, "\u202e", "what reorders text is not shown")
				}
			})
		})
	}
}

// TestAttackToolTakenFromAnAgent: a tool that was taken from the agent while the user was asked about its call does not
// run. The control is an agent that keeps it.
func TestAttackToolTakenFromAnAgent(t *testing.T) {
	clerk := auth.Caller{ID: "token", Tenant: "acme", Scopes: everything, Agent: "clerk"}
	for name, connect := range map[string]func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession{
		"lines": connectLinesOf("", "clerk"), "lines 2025-11-25": connectLinesOf("2025-11-25", "clerk"),
		"sessions": connectWeb("2025-11-25", &clerk), "stateless": connectWeb("", &clerk),
	} {
		for _, taken := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%t", name, taken), func(t *testing.T) {
				wipe, ran := newWipe(t)
				w := newWorld(t, mcp.Options{}, wipe)
				require.NoError(t, w.agents.Save(t.Context(), "acme", agents.Agent{Name: "clerk", AllowedTools: []string{"wipe"}}, w.host.Registry()))
				c := connect(t, w, &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					if taken {
						assert.NoError(t, w.agents.Save(t.Context(), "acme", agents.Agent{Name: "clerk", AllowedTools: []string{"ask_user"}}, w.host.Registry()))
					}
					return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
				}})
				result := call(t, c, "wipe", map[string]any{"path": "disk"})
				assert.Equal(t, taken, result.IsError)
				assert.Equal(t, taken, ran.Load() == 0)
				if taken {
					assert.Contains(t, text(t, result, 0), "wipe is not among the tools that this agent may call")
				}
				list := noerr.Get(c.ListTools(t.Context(), nil))(t)
				require.Len(t, list.Tools, 1)
				assert.Equal(t, taken, list.Tools[0].Name == "ask_user")
			})
		}
	}
}

// TestClientRunTools: what the user says becomes the result of a tool that the client runs.
func TestClientRunTools(t *testing.T) {
	for name, test := range map[string]struct {
		answer *sdk.ElicitResult
		want   string
		failed bool
	}{
		"answer":  {&sdk.ElicitResult{Action: "accept", Content: map[string]any{"output": "Oslo"}}, "Oslo", false},
		"decline": {&sdk.ElicitResult{Action: "decline"}, "the user declined to run the tool", true},
		"cancel":  {&sdk.ElicitResult{Action: "cancel"}, "the user did not answer", true},
		"nobody":  {nil, "this client cannot ask its user", true},
	} {
		t.Run(name, func(t *testing.T) {
			overAll(t, func(t *testing.T, connect func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession) {
				var asked atomic.Pointer[sdk.ElicitParams]
				var options *sdk.ClientOptions
				if test.answer != nil {
					options = answers(&asked, test.answer)
				}
				c := connect(t, newWorld(t, mcp.Options{}), options)
				result := call(t, c, "ask_user", map[string]any{"question": "Which city?"})
				assert.Contains(t, text(t, result, 0), test.want)
				assert.Equal(t, test.failed, result.IsError)
				if test.answer != nil {
					assert.Contains(t, asked.Load().Message, "Which city?")
				}
			})
		})
	}
}

// byHand is a client of the latest revision that sees the server's questions instead of answering them.
func byHand() *sdk.ClientOptions {
	return &sdk.ClientOptions{
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		Capabilities:   &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{}},
	}
}

func yes(asked *sdk.CallToolResult) sdk.InputResponseMap {
	answers := sdk.InputResponseMap{}
	for id := range asked.InputRequests {
		answers[id] = &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}
	}
	return answers
}

// TestAttackAnswersToOtherQuestions: an answer is for one call of one caller with the arguments that the user saw, and
// for one time.
func TestAttackAnswersToOtherQuestions(t *testing.T) {
	wipe, ran := newWipe(t)
	w := newWorld(t, mcp.Options{}, wipe, newFake(t, "other", fields{"behavior": fields{"destructive": true}}, says(tool.Result{Success: true})))
	mine := connectWeb("", &auth.Caller{ID: "1", Tenant: "acme", Scopes: everything})(t, w, byHand())
	asked := call(t, mine, "wipe", map[string]any{"path": "a"})
	require.True(t, asked.NeedsInput())
	try := func(c *sdk.ClientSession, name, path, state string, answers sdk.InputResponseMap) (*sdk.CallToolResult, error) {
		return c.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: map[string]any{"path": path}, RequestState: state, InputResponses: answers})
	}
	for name, attack := range map[string]func() (*sdk.CallToolResult, error){
		"other arguments": func() (*sdk.CallToolResult, error) { return try(mine, "wipe", "b", asked.RequestState, yes(asked)) },
		"another tool":    func() (*sdk.CallToolResult, error) { return try(mine, "other", "a", asked.RequestState, yes(asked)) },
		"a guessed state": func() (*sdk.CallToolResult, error) { return try(mine, "wipe", "a", asked.RequestState+"A", yes(asked)) },
	} {
		_, err := attack()
		assertCode(t, jsonrpc.CodeInvalidParams, err)
		assert.Zero(t, ran.Load(), name)
	}
	for name, other := range map[string]auth.Caller{
		"another tenant": {ID: "1", Tenant: "evil", Scopes: everything}, "another token": {ID: "2", Tenant: "acme", Scopes: everything},
		"another user": {ID: "1", Tenant: "acme", User: "eve", Scopes: everything},
	} {
		_, err := try(connectWeb("", &other)(t, w, byHand()), "wipe", "a", asked.RequestState, yes(asked))
		assertCode(t, jsonrpc.CodeInvalidParams, err)
		assert.Zero(t, ran.Load(), name)
	}
	again := noerr.Get(try(mine, "wipe", "a", asked.RequestState, sdk.InputResponseMap{}))(t)
	require.True(t, again.NeedsInput(), "an answer is missing")

	less := connectWeb("", &auth.Caller{ID: "1", Tenant: "acme", Scopes: []auth.Scope{auth.Call}})(t, w, byHand())
	unasked := noerr.Get(try(less, "wipe", "a", asked.RequestState, yes(asked)))(t)
	assert.Contains(t, text(t, unasked, 0), `the scope "approve"`, "the token has lost the scope since")
	assert.Zero(t, ran.Load())

	asked = call(t, mine, "wipe", map[string]any{"path": "a"})
	result, err := try(mine, "wipe", "a", asked.RequestState, yes(asked)) // the control
	require.NoError(t, err)
	assert.Equal(t, "wiped", text(t, result, 0))
	_, err = try(mine, "wipe", "a", asked.RequestState, yes(asked))
	assertCode(t, jsonrpc.CodeInvalidParams, err)
	assert.EqualValues(t, 1, ran.Load())
}

// TestAttackApprovalWithoutTheScope: who may call and may not approve is not asked, and cannot answer.
func TestAttackApprovalWithoutTheScope(t *testing.T) {
	for _, version := range []string{"", "2025-11-25"} {
		wipe, ran := newWipe(t)
		w := newWorld(t, mcp.Options{}, wipe)
		var asked atomic.Pointer[sdk.ElicitParams]
		options := answers(&asked, &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}})
		result := call(t, connectWeb(version, &auth.Caller{ID: "1", Tenant: "acme", Scopes: []auth.Scope{auth.Read, auth.Call}})(t, w, options), "wipe", nil)
		assert.True(t, result.IsError)
		assert.Contains(t, text(t, result, 0), `the scope "approve"`)
		assert.Nil(t, asked.Load())
		assert.Zero(t, ran.Load())
		result = call(t, connectWeb(version, &auth.Caller{ID: "1", Tenant: "acme", Scopes: everything})(t, w, options), "wipe", nil) // the control
		assert.False(t, result.IsError)
		assert.EqualValues(t, 1, ran.Load())
	}
}

// TestManyQuestions: one caller's forgotten questions are bounded, and the newest can be answered.
func TestManyQuestions(t *testing.T) {
	wipe, ran := newWipe(t)
	c := connectLines("")(t, newWorld(t, mcp.Options{}, wipe), byHand())
	var first, last *sdk.CallToolResult
	for range 40 {
		last = call(t, c, "wipe", nil)
		if first == nil {
			first = last
		}
	}
	_, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "wipe", RequestState: first.RequestState, InputResponses: yes(first)})
	assertCode(t, jsonrpc.CodeInvalidParams, err)
	result := noerr.Get(c.CallTool(t.Context(), &sdk.CallToolParams{Name: "wipe", RequestState: last.RequestState, InputResponses: yes(last)}))(t)
	assert.Equal(t, "wiped", text(t, result, 0))
	assert.EqualValues(t, 1, ran.Load())
}

// TestCancelledQuestions: a call whose client gives up while the user is asked ends.
func TestCancelledQuestions(t *testing.T) {
	for _, connect := range []func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession{connectLines("2025-11-25"), connectWeb("2025-11-25", nil)} {
		wipe, ran := newWipe(t)
		asked := make(chan struct{})
		w := newWorld(t, mcp.Options{}, wipe)
		c := connect(t, w, &sdk.ClientOptions{ElicitationHandler: func(ctx context.Context, _ *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			close(asked)
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
			return &sdk.ElicitResult{Action: "cancel"}, nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		called := make(chan error, 1)
		go func() {
			_, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "wipe"})
			called <- err
		}()
		receives(t, asked, "nobody is asked")
		cancel()
		require.ErrorIs(t, <-called, context.Canceled)
		assert.Zero(t, ran.Load())
	}
}

package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/mcp"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/tool"
)

// tools are what the SDK knows of the host's tools.
type tools struct {
	mu    sync.RWMutex
	known map[string]known // by registered name
}

// known is one tool as it was offered to the SDK.
type known struct {
	definition tool.Definition
	offered    *sdk.Tool
	err        error // why it is not offered
}

// follow brings the SDK's tools up to date whenever the names change. The SDK then tells clients.
func (s *Server) follow() {
	changed := s.host.Registry().Changed()
	s.update()
	s.background.Go(func() {
		for {
			select {
			case <-changed:
				changed = s.host.Registry().Changed() // before the names are read, so that no change is missed
				s.update()
			case <-s.closed:
				return
			}
		}
	})
}

// announcements are what sessions are being told about tools that have changed. The zero value is usable.
type announcements struct {
	mu   sync.Mutex
	open map[*sdk.ServerSession]sdk.Request // what to tell a session next; nil if that is all
}

// begin reports whether a session is to be told now. If it is being told already, it is told again afterwards.
func (a *announcements) begin(session *sdk.ServerSession, what sdk.Request) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.open[session]; ok {
		a.open[session] = what
		return false
	}
	if a.open == nil {
		a.open = map[*sdk.ServerSession]sdk.Request{}
	}
	a.open[session] = nil
	return true
}

// next returns what a session that was told is to be told next, or nil.
func (a *announcements) next(session *sdk.ServerSession) sdk.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	what := a.open[session]
	if what == nil {
		delete(a.open, session)
	} else {
		a.open[session] = nil
	}
	return what
}

// announce sees what the SDK tells clients. The SDK tells one session after another that tools have changed, and each
// waits for its client. So that none waits for the client of another, each is told on its own.
func (s *Server) announce(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, request sdk.Request) (sdk.Result, error) {
		session, ok := request.GetSession().(*sdk.ServerSession)
		if method != toolsChanged || !ok {
			return next(ctx, method, request)
		}
		if s.announcements.begin(session, request) {
			ctx := context.WithoutCancel(ctx) // which ends when the SDK has gone through the sessions
			go func() {                       // ends with the write, whose time the server bounds
				for what := request; what != nil; what = s.announcements.next(session) {
					_, _ = next(ctx, method, what) // the client may have gone
				}
			}()
		}
		return nil, nil
	}
}

const toolsChanged = "notifications/tools/list_changed"

// update gives the SDK the tools that are new or have changed, and takes those that are gone.
func (s *Server) update() {
	s.tools.mu.Lock()
	defer s.tools.mu.Unlock()
	catalogue := s.host.Catalogue(nil)
	for i := range catalogue.Tools {
		// A tool that is unavailable now may be available when it is listed or called. Until then it is not
		// listed, and a call is answered with the reason.
		catalogue.Tools[i].Unavailable = ""
	}
	current := map[string]known{}
	for _, definition := range catalogue.Definitions() {
		current[definition.Name] = known{definition: definition}
	}
	for name, k := range current {
		if before, ok := s.tools.known[name]; ok && same(before.definition, k.definition) {
			current[name] = before
			continue
		}
		if k.offered, k.err = offer(k.definition); k.err == nil {
			k.err = s.add(k.offered)
		}
		if k.err != nil {
			s.log.Warn("the tool is not offered to MCP clients", "tool", name, "err", k.err)
			s.sdk.RemoveTools(name)
		}
		current[name] = k
	}
	for name := range s.tools.known {
		if _, ok := current[name]; !ok {
			s.sdk.RemoveTools(name)
		}
	}
	s.tools.known = current
}

func same(a, b tool.Definition) bool {
	parameters := string(a.Parameters) == string(b.Parameters) && string(a.Result) == string(b.Result)
	return parameters && a.Name == b.Name && a.Description == b.Description && a.Label == b.Label && a.Hints == b.Hints
}

// add adds a tool to the SDK, which panics if it does not like the schema.
func (s *Server) add(t *sdk.Tool) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("the schema cannot be offered: %v", value)
		}
	}()
	s.sdk.AddTool(t, s.call)
	return nil
}

// offer returns a definition as the dialect writes it.
func offer(definition tool.Definition) (*sdk.Tool, error) {
	written, _, err := mcp.New().Definitions([]tool.Definition{definition}, dialects.DefinitionOptions{})
	if err != nil {
		return nil, err
	}
	var list []struct {
		sdk.Tool
		// The schemas as they are: decoding would change numbers and the order of members.
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema"`
	}
	if err := json.Unmarshal(written, &list); err != nil {
		return nil, err
	}
	offered := &list[0].Tool
	offered.InputSchema = list[0].InputSchema
	if list[0].OutputSchema != nil {
		offered.OutputSchema = list[0].OutputSchema
	}
	return offered, nil
}

// list answers tools/list with the tools that the caller may call and that are available.
func (s *Server) list(ctx context.Context, request *sdk.ListToolsRequest) (*sdk.ListToolsResult, error) {
	by, err := s.by(ctx, request.Session, request.Extra)
	if err != nil {
		return nil, err
	}
	if !by.may(auth.Read) && !by.may(auth.Call) {
		return nil, refused(`the token has neither the scope "read" nor "call"`)
	}
	after := ""
	if request.Params != nil && request.Params.Cursor != "" {
		name, err := base64.RawURLEncoding.DecodeString(request.Params.Cursor)
		if err != nil || len(name) == 0 {
			return nil, refused("the cursor is not one of this server's")
		}
		after = string(name)
	}
	allowed, err := by.allowed(ctx)
	if err != nil {
		return nil, s.failed(ctx, "tools/list", err)
	}
	result, size := &sdk.ListToolsResult{Cacheable: uncached, Tools: []*sdk.Tool{}}, 0
	for _, definition := range s.host.Catalogue(allowed).Definitions() { // sorted by name
		if after != "" && definition.Name <= after {
			continue
		}
		offered, ok := s.tools.offered(definition.Name)
		switch {
		case !ok: // new, and about to be announced; or not to be offered
		case len(result.Tools) == s.options.Page:
			result.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(result.Tools[s.options.Page-1].Name))
			return result, by.reserve(size)
		default:
			result.Tools = append(result.Tools, offered)
			size += len(definition.Parameters) + len(definition.Result) + len(definition.Description)
		}
	}
	return result, by.reserve(size)
}

// offered returns a tool as the SDK has it.
func (t *tools) offered(name string) (*sdk.Tool, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	k, ok := t.known[name]
	return k.offered, ok && k.err == nil
}

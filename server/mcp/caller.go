package mcp

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/internal/memory"
	"github.com/caisson-run/caisson/tool"
)

// by is who makes a request, and in which session.
type by struct {
	// key is the same for requests of the same caller in the same session, and for no others.
	key string
	// tenant is the [memory.Sharer].
	tenant  string
	may     func(auth.Scope) bool
	allowed func(ctx context.Context) ([]string, error)
	// session returns the executor's session, and what to call when the request has ended.
	session func(context.Context) (*executor.Session, func(), error)
	// found is session without making one: the session is nil if there is none.
	found func(context.Context) (*executor.Session, func(), error)
	// gone is done when no client waits for the answer.
	gone context.Context
	// answers has a wait group wait until the request has been answered.
	answers func(*sync.WaitGroup)
}

// maxWait is the longest wait of an answer for room.
const maxWait = 10 * time.Second

// reserve waits until there is room for as many bytes of the answer, which its client may leave unread. Over lines, the
// connection bounds them.
func (b *by) reserve(bytes int) error {
	ctx, cancel := context.WithTimeout(b.gone, maxWait)
	defer cancel()
	if memory.ReserveOneOfMany(ctx, bytes) != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
			Message: "the open requests of the tenant, or of all, have too many bytes in answers that were not taken; try " +
				"again later"}
	}
	return nil
}

type lineKey struct{}

// line is the caller over lines, who started the program and may do everything.
type line struct {
	session *executor.Session
	gone    context.Context
}

func (l line) found(context.Context) (*executor.Session, func(), error) {
	return l.session, func() {}, nil
}

// refused is the answer to a request that is wrong.
func refused(message string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
}

// conversation is one call and who makes it.
type conversation struct {
	by
	session *executor.Session
	request *sdk.CallToolRequest
	name    string // of the tool, as the client wrote it
}

// callID is the id of a call in its batch, which has no other. The SDK matches answers with requests.
const callID = "call"

// argumentsOf returns the text of the arguments, with all digits and whatever is wrong with it.
func argumentsOf(request *sdk.CallToolRequest) string {
	if text := string(request.Params.Arguments); text != "null" {
		return text
	}
	return "" // as when they are absent
}

// progress passes on what a call streams while it runs: progress and links as progress, if the client
// asks for it, and text as log messages, for clients that chose a level.
type progress struct {
	ctx     context.Context
	session *sdk.ServerSession
	token   any // nil if the client asks for none

	told   bool
	at     float64 // the last progress sent, of 100
	shares bool    // the tool says how much is done
}

func (c *conversation) progress(ctx context.Context) *progress {
	return &progress{ctx: ctx, session: c.request.Session, token: c.request.Params.GetProgressToken()}
}

// show shows one event. Clients that cannot be told miss it.
func (p *progress) show(event tool.Event) bool {
	if event.Type != tool.CallOutput || event.Emission == nil {
		return true
	}
	switch e := event.Emission; e.Type {
	case tool.EmitProgress:
		p.tell(e.Fraction, e.Text)
	case tool.EmitLink:
		var url string
		if json.Unmarshal(e.Data, &url) == nil {
			p.tell(nil, e.Text+" "+url)
		}
	case tool.EmitText:
		//lint:ignore SA1019 the latest revision keeps log messages for a year
		_ = p.session.Log(p.ctx, &sdk.LoggingMessageParams{Level: "info", Logger: event.Tool, Data: e.Text})
	}
	return true
}

// tell sends progress, which must increase with each message.
func (p *progress) tell(fraction *float64, message string) {
	if p.token == nil {
		return
	}
	at := p.at
	if p.told {
		at += (100 - at) / 1000 // there was progress, of unknown size
	}
	if fraction != nil {
		p.shares = true
		switch share := 100 * *fraction; {
		case !p.told || share > p.at:
			at = share
		case message == "":
			return
		}
	}
	p.told, p.at = true, at
	total := 0.0 // unknown
	if p.shares {
		total = 100
	}
	_ = p.session.NotifyProgress(p.ctx,
		&sdk.ProgressNotificationParams{ProgressToken: p.token, Progress: at, Total: total, Message: message})
}

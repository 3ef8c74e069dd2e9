package mcp

import (
	"context"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-run/caisson/tool"
)

// progress passes on what a call streams while it runs: progress and links as progress, if the client
// asks for it, and text as log messages, for clients that chose a level.
type progress struct {
	ctx     context.Context
	session *sdk.ServerSession
	token   any // nil if the client asks for none

	told   bool
	at     float64 // what was said last, of 100
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
		at += (100 - at) / 1000 // something has happened, and nobody knows how much of it
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

// Package clock tells guests the time in the zones that they may know.
package clock

import (
	"context"
	"time"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/journal"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// Module is the host module, as guests name it.
const Module = "caisson:clock@1"

const kind permission.Kind = "clock"

// Permission is request ∩ grant − deny: the zones of one tool. It is immutable.
type Permission struct {
	tool      string
	allowed   map[string]bool
	decisions []tool.Decision
}

// New decides what a tool may know. The module is its digest; empty where that is not known.
func New(m *manifests.Manifest, grants manifests.Grants, module string) *Permission {
	p := &Permission{tool: m.Name, allowed: map[string]bool{}}
	var granted map[string]int
	p.decisions, granted = grants.NameRules(kind, m.Permissions.Clock, module).DecideNames("no grant names it", p.allow)
	for zone := range granted {
		p.allowed[zone] = true
	}
	return p
}

func (p *Permission) allow(zone string) tool.Allow {
	return tool.Allow{Grant: manifests.Grants{Clock: []manifests.NameGrant{{Name: zone}}}.Rule(p.tool)}
}

// Decisions returns what became of each request.
func (p *Permission) Decisions() []tool.Decision { return p.decisions }

// session is what one guest asks.
type session struct {
	permission *Permission
	journal    journal.Journal
	now        func() time.Time
}

type key struct{}

// Open begins one call.
func (p *Permission) Open(ctx context.Context, now func() time.Time) (context.Context, *journal.Journal) {
	s := &session{permission: p, now: now}
	return context.WithValue(ctx, key{}, s), &s.journal
}

// Functions returns hour(zone), which is -1 where the guest may not know.
func Functions() []hostfuncs.Function {
	return []hostfuncs.Function{{
		Module: Module, Name: "hour", Params: []hostfuncs.ValueType{hostfuncs.I32, hostfuncs.I32},
		Results: []hostfuncs.ValueType{hostfuncs.I64},
		Call: func(ctx context.Context, memory hostfuncs.Memory, stack []uint64) error {
			zone, _ := memory.View(uint32(stack[0]), uint32(stack[1]))
			stack[0] = uint64(ctx.Value(key{}).(*session).hour(string(zone)))
			return nil
		},
	}}
}

func (s *session) hour(zone string) int64 {
	call := tool.HostCall{Kind: "clock.hour", Target: tool.Shown(zone, 64), Began: s.now(), Status: string(tool.Denied)}
	location, err := time.LoadLocation(zone)
	if call.Allowed = err == nil && s.permission.allowed[zone]; call.Allowed {
		call.Status = "ok"
	}
	s.journal.Begin(call)
	if !call.Allowed {
		s.journal.Deny(tool.Denial{Permission: string(kind), Value: call.Target, Rule: "no grant names it",
			Allow: s.permission.allow(zone)}, nil)
		return -1
	}
	return int64(s.now().In(location).Hour())
}

package runtime

import (
	"context"
	"path"

	"github.com/caisson-run/caisson/hostfuncs/stream"
	"github.com/caisson-run/caisson/runtime/internal/abi"
	"github.com/caisson-run/caisson/tool"
)

// about is what the guest may know of its call: of the host's context the values that the tool was
// granted, and of its files those that the tool can open. What others are called is not for it to
// know.
func (r *run) about() abi.About {
	made := r.invocation
	about := abi.About{
		CallID: made.CallID, Tool: made.Tool, Tenant: made.Tenant, User: made.User, Session: made.Session, Trace: made.Trace,
		Context: map[string]string{}, Files: []tool.File{},
	}
	for name := range r.tool.permit.context {
		if value, ok := made.Context[name]; ok {
			about.Context[name] = value
		}
	}
	for _, file := range made.Files {
		if r.tool.permit.reaches(file.Path) {
			about.Files = append(about.Files, file)
		}
	}
	return about
}

// reaches reports whether a guest path leads into a directory that the tool has. One that is not
// clean, such as /project/../secret, leads nowhere.
func (p *permit) reaches(guest string) bool {
	if path.Clean(guest) != guest {
		return false
	}
	for _, mount := range p.mounts {
		if guest != mount.Guest.String() && mount.Guest.Matches(guest) {
			return true
		}
	}
	return false
}

// speech is what the guest can say before its call has ended: as much as its result may have, to
// whoever watches, and without secrets, as its result.
func (r *run) speech() stream.Options {
	secrets := r.tool.permit.secrets
	options := stream.Options{Bytes: int64(r.tool.limits.Output)}
	if secrets.Longest() > 0 {
		options.Mask = func(ctx context.Context, text []byte) ([]byte, error) { return secrets.MaskFirst(ctx, text, len(text)) }
	}
	if r.invocation.Host != nil {
		options.Emit = r.invocation.Host.Emit
	}
	return options
}

// tellWithheld tells the operator of emissions that were not shown.
func (r *run) tellWithheld(ctx context.Context) {
	if n := r.host.stream.Withheld(); n > 0 {
		r.tool.runtime.logger.WarnContext(ctx, "emissions withheld, since they hold a secret", "call_id", r.invocation.CallID,
			"tool", r.tool.manifest.Name, "emissions", n)
	}
}

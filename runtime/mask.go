package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/caisson-run/caisson/runtime/internal/wasi"
)

// maskGrace is how long the log of a call whose time is over may be masked, which is most worth
// reading then. It is far less than how late a call may be.
const maskGrace = 20 * time.Millisecond

// unmaskedLog stands for a log that could not be masked in time.
const unmaskedLog = "[the log is not shown: there was no time to take secrets out of it]\n"

// mask takes secrets out of all that the guest had a say in: it cannot have read one, but a server
// may have told it in a form of its own. It is given how the guest ended, and returns how the call
// does: what cannot be masked before the deadline is not shown, and without its output the call is
// late.
func (r *run) mask(ended error) error {
	secrets := r.tool.permit.secrets
	if r.host.permitted == nil || secrets.Longest() == 0 {
		return ended
	}
	var exit *wasi.ExitError
	var err error
	if ended != nil && !errors.As(ended, &exit) {
		r.stdout.Bytes = nil // nobody is shown it
	} else if r.stdout.Bytes, err = secrets.MaskFirst(r.deadline, r.stdout.Bytes, len(r.stdout.Bytes)); err != nil {
		ended = err
	}
	r.stderr.Bytes = r.maskedLog()
	text := secrets.MaskText
	for i := range r.denials {
		d := &r.denials[i]
		d.Value, d.Rule = text(d.Value), text(d.Rule)
		for _, rule := range []*json.RawMessage{&d.Allow.Manifest, &d.Allow.Grant} {
			if text(string(*rule)) != string(*rule) {
				*rule = nil // with a mask in it, it would be a rule for something else
			}
		}
	}
	for i := range r.hostCalls {
		r.hostCalls[i].Target = text(r.hostCalls[i].Target)
	}
	return ended
}

// maskedLog returns what the guest wrote to its log without secrets.
func (r *run) maskedLog() []byte {
	log := r.stderr.Bytes
	masked, err := r.tool.permit.secrets.MaskFirst(r.deadline, log, len(log))
	if err == nil {
		return masked
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.deadline), maskGrace)
	defer cancel()
	if masked, err = r.tool.permit.secrets.MaskFirst(ctx, log, len(log)); err != nil {
		return []byte(unmaskedLog)
	}
	return masked
}

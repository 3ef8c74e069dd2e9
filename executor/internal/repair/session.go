package repair

import (
	"context"
	"encoding/json"
	"time"

	"github.com/caisson-run/caisson/manifests/schema"
)

// session is the use of a probe by one repair. It takes one when it first needs it.
type session struct {
	ctx    context.Context
	schema *schema.Schema
	idle   chan *schema.Probe
	probe  *schema.Probe
	err    error
}

// fits reports whether a value certainly fits a node.
func (s *session) fits(n *schema.Node, value json.RawMessage) bool {
	if s.probe == nil && s.err == nil {
		s.probe, s.err = s.take()
	}
	return s.err == nil && s.probe.Fits(s.ctx, n, value)
}

func (s *session) take() (*schema.Probe, error) {
	select {
	case probe := <-s.idle:
		probe.Restart()
		return probe, nil
	default:
		return s.schema.Probe()
	}
}

// ended returns the error of a context that has ended, or whose deadline has come.
func (s *session) ended() error {
	if at, has := s.ctx.Deadline(); has && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return s.ctx.Err()
}

// end gives the probe back.
func (s *session) end() {
	if s.probe == nil {
		return
	}
	select {
	case s.idle <- s.probe:
	default:
	}
}

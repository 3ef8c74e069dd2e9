//go:build !linux

package engine

// faultWatch detects first writes to pages on systems that can report them.
type faultWatch struct{}

func (*faultWatch) begin() {}

func (*faultWatch) countWith(*faultWatch) {}

func (*faultWatch) stop()         {}
func (w *faultWatch) locks() bool { return false }

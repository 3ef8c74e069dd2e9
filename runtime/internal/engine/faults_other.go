//go:build !linux

package engine

// faultWatch tells whether a run may have written pages of its memory for the first time, on
// systems that can tell.
type faultWatch struct{}

func (*faultWatch) begin() {}

func (*faultWatch) stop() {}

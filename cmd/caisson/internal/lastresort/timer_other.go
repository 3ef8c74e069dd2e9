//go:build !linux || !(amd64 || arm64)

package lastresort

import "time"

// Timer is not supported on this system.
type Timer struct{}

// New fails.
func New() (*Timer, error) { return nil, ErrUnavailable }

// Arm does nothing.
func (*Timer) Arm(time.Time, string) {}

// Disarm does nothing.
func (*Timer) Disarm() {}

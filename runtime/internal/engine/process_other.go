//go:build !unix

package engine

// limitProcess bounds nothing here; the parent bounds the time on the clock.
func limitProcess(_, _ uint64) error { return nil }

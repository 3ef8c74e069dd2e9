//go:build !unix

package engine

// limitProcess limits nothing on this system; the parent limits the wall time.
func limitProcess(_, _ uint64) error { return nil }

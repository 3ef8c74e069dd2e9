//go:build unix && !linux

package engine

const mapNoReserve = 0

func useSmallPages([]byte) error { return nil }

//go:build linux

package engine

import "golang.org/x/sys/unix"

// mapNoReserve keeps reserved address space out of the system's commit accounting.
const mapNoReserve = unix.MAP_NORESERVE

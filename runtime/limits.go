package runtime

import (
	"errors"
	"fmt"
	"time"

	"github.com/caisson-run/caisson/hostfuncs/network"
	"github.com/caisson-run/caisson/manifests"
)

// Limits are bounds on every call of every tool of a [Runtime]. A tool gets what its
// manifest asks for, at most what stands here, and where the manifest asks for nothing,
// the default named below.
//
// Zero means the value named at each field; a negative value is an error. There is no
// "unlimited".
type Limits struct {
	Timeout   time.Duration   // ceiling and default: 10 s
	Memory    manifests.Bytes // linear memory. Ceiling and default: 128 MiB
	Output    manifests.Bytes // stdout. Ceiling: 4 MiB, default 256 KiB
	Stderr    manifests.Bytes // ceiling: 1 MiB, default 64 KiB
	OpenFiles int             // ceiling: 1,024, default 64
	DiskBytes manifests.Bytes // what a call may add to its directories. Ceiling: 1 GiB, default 64 MiB
	HTTPCalls int             // requests. Ceiling: 1,000, default 20
	HTTPBytes manifests.Bytes // bodies in both directions, decompressed. Ceiling: 256 MiB, default 8 MiB
	// Fuel is how many instructions a call may execute. Ceiling and default: as many as it
	// can in its time. The count is exact, and equal for equal calls. What other tools do for the
	// call is taken off it too.
	Fuel int64
}

const (
	kibibyte manifests.Bytes = 1 << 10
	mebibyte manifests.Bytes = 1 << 20
)

// ceilings are the limits that stand for zero.
func ceilings() Limits {
	return Limits{
		Timeout: 10 * time.Second, Memory: 128 * mebibyte, Output: 4 * mebibyte, Stderr: mebibyte,
		OpenFiles: 1024, DiskBytes: 1024 * mebibyte, HTTPCalls: 1000, HTTPBytes: 256 * mebibyte,
	}
}

// defaults are what a tool gets that asks for nothing. Time and memory are the
// ceiling's own.
func defaults(ceiling Limits) Limits {
	return Limits{
		Timeout: ceiling.Timeout, Memory: ceiling.Memory, Output: 256 * kibibyte, Stderr: 64 * kibibyte,
		OpenFiles: 64, DiskBytes: 64 * mebibyte, HTTPCalls: network.DefaultCalls, HTTPBytes: network.DefaultBytes,
	}
}

var errNegativeLimit = errors.New("a limit is negative")

// under returns the limits with a profile's in place of zeros.
func (l Limits) under(p manifests.Limits) Limits {
	return Limits{
		Timeout: or(l.Timeout, p.Timeout), Memory: or(l.Memory, p.Memory), Output: or(l.Output, p.Output), Stderr: or(l.Stderr, p.Stderr),
		OpenFiles: or(l.OpenFiles, p.OpenFiles), DiskBytes: or(l.DiskBytes, p.DiskBytes),
		HTTPCalls: or(l.HTTPCalls, p.HTTPCalls), HTTPBytes: or(l.HTTPBytes, p.HTTPBytes), Fuel: or(l.Fuel, p.Fuel),
	}
}

// complete replaces zeros by the ceilings.
func (l Limits) complete() (Limits, error) {
	if l.Timeout < 0 || l.Memory < 0 || l.Output < 0 || l.Stderr < 0 || l.OpenFiles < 0 || l.DiskBytes < 0 || l.HTTPCalls < 0 || l.HTTPBytes < 0 || l.Fuel < 0 {
		return Limits{}, fmt.Errorf("runtime: %w: %+v", errNegativeLimit, l)
	}
	standard := ceilings()
	return Limits{
		Timeout:   or(l.Timeout, standard.Timeout),
		Memory:    or(l.Memory, standard.Memory),
		Output:    or(l.Output, standard.Output),
		Stderr:    or(l.Stderr, standard.Stderr),
		OpenFiles: or(l.OpenFiles, standard.OpenFiles),
		DiskBytes: or(l.DiskBytes, standard.DiskBytes),
		HTTPCalls: or(l.HTTPCalls, standard.HTTPCalls),
		HTTPBytes: or(l.HTTPBytes, standard.HTTPBytes),
		Fuel:      l.Fuel,
	}, nil
}

// effective returns a tool's limits under a complete ceiling.
func effective(ceiling Limits, asked manifests.Limits) Limits {
	standard := defaults(ceiling)
	return Limits{
		Timeout:   min(or(asked.Timeout, standard.Timeout), ceiling.Timeout),
		Memory:    min(or(asked.Memory, standard.Memory), ceiling.Memory),
		Output:    min(or(asked.Output, standard.Output), ceiling.Output),
		Stderr:    min(or(asked.Stderr, standard.Stderr), ceiling.Stderr),
		OpenFiles: min(or(asked.OpenFiles, standard.OpenFiles), ceiling.OpenFiles),
		DiskBytes: min(or(asked.DiskBytes, standard.DiskBytes), ceiling.DiskBytes),
		HTTPCalls: min(or(asked.HTTPCalls, standard.HTTPCalls), ceiling.HTTPCalls),
		HTTPBytes: min(or(asked.HTTPBytes, standard.HTTPBytes), ceiling.HTTPBytes),
		Fuel:      min(or(asked.Fuel, ceiling.Fuel), or(ceiling.Fuel, asked.Fuel)),
	}
}

// or returns the value, or the fallback for zero.
func or[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-run/caisson/manifests"
)

// Limits bound every call of every tool of a [Runtime]. Each limit is a ceiling on what a
// manifest may request. A manifest that requests nothing gets the default named below, but
// never more than the ceiling.
//
// Zero means the ceiling named at each field; a negative value is an error, and so is Memory over
// [manifests.MaxMemory]. There is no "unlimited".
type Limits struct {
	Timeout   time.Duration   // ceiling and default: 10 s
	Memory    manifests.Bytes // linear memory. Ceiling and default: 128 MiB
	Output    manifests.Bytes // stdout. Ceiling: 4 MiB, default 256 KiB
	Stderr    manifests.Bytes // ceiling: 1 MiB, default 64 KiB
	OpenFiles int             // ceiling: 1,024, default 64
	DiskBytes manifests.Bytes // added by a call to its directories. Ceiling: 1 GiB, default 64 MiB
	HTTPCalls int             // requests. Ceiling: 1,000, default 20
	HTTPBytes manifests.Bytes // bodies in both directions, decompressed. Ceiling: 64 MiB, default 8 MiB
	// Fuel is the number of instructions that a call may execute. By default only the timeout bounds it. The count is
	// exact and the same for equal calls, with one exception: a call that starts the program itself, such as the first
	// one, pays for the start, and a call that resumes a snapshot does not. Calls that the tool makes to other tools
	// use the same fuel.
	Fuel int64
}

const (
	kibibyte manifests.Bytes = 1 << 10
	mebibyte manifests.Bytes = 1 << 20
)

// ceilings returns the limits that replace zeros.
func ceilings() Limits {
	return Limits{
		Timeout: 10 * time.Second, Memory: 128 * mebibyte, Output: 4 * mebibyte, Stderr: mebibyte,
		OpenFiles: 1024, DiskBytes: 1024 * mebibyte, HTTPCalls: 1000, HTTPBytes: 64 * mebibyte,
	}
}

// defaults returns the limits of a tool that requests none. Time and memory default to the
// ceiling.
func defaults(ceiling Limits) Limits {
	return Limits{
		Timeout: ceiling.Timeout, Memory: ceiling.Memory, Output: 256 * kibibyte, Stderr: 64 * kibibyte,
		OpenFiles: 64, DiskBytes: 64 * mebibyte, HTTPCalls: 20, HTTPBytes: 8 * mebibyte,
	}
}

var (
	errNegativeLimit = errors.New("a limit is negative")
	errTooMuchMemory = fmt.Errorf("the memory limit is over %s, the most that a tool may have", manifests.MaxMemory)
)

// combined returns the limits that combine makes of each limit and the other one.
func (l Limits) combined(o Limits, combine func(a, b int64) int64) Limits {
	bytes := func(a, b manifests.Bytes) manifests.Bytes { return manifests.Bytes(combine(int64(a), int64(b))) }
	number := func(a, b int) int { return int(combine(int64(a), int64(b))) }
	return Limits{
		Timeout: time.Duration(combine(int64(l.Timeout), int64(o.Timeout))), Memory: bytes(l.Memory, o.Memory),
		Output: bytes(l.Output, o.Output), Stderr: bytes(l.Stderr, o.Stderr),
		OpenFiles: number(l.OpenFiles, o.OpenFiles), DiskBytes: bytes(l.DiskBytes, o.DiskBytes),
		HTTPCalls: number(l.HTTPCalls, o.HTTPCalls), HTTPBytes: bytes(l.HTTPBytes, o.HTTPBytes),
		Fuel: combine(l.Fuel, o.Fuel),
	}
}

// or returns the limits with zeros replaced by the other ones.
func (l Limits) or(o Limits) Limits {
	return l.combined(o, func(a, b int64) int64 { return cmp.Or(a, b) })
}

// narrowed returns the smaller of each limit and the other one. Zero is not a limit.
func (l Limits) narrowed(o Limits) Limits {
	return l.combined(o, func(a, b int64) int64 { return min(cmp.Or(a, b), cmp.Or(b, a)) })
}

// complete returns the limits with zeros replaced by the ceilings.
func (l Limits) complete() (Limits, error) {
	if l.Timeout < 0 || l.Memory < 0 || l.Output < 0 || l.Stderr < 0 || l.OpenFiles < 0 || l.DiskBytes < 0 ||
		l.HTTPCalls < 0 || l.HTTPBytes < 0 || l.Fuel < 0 {
		return Limits{}, fmt.Errorf("%w: %+v", errNegativeLimit, l)
	}
	if l.Memory > manifests.MaxMemory {
		return Limits{}, fmt.Errorf("%w: %s", errTooMuchMemory, l.Memory)
	}
	return l.or(ceilings()), nil
}

// effective returns a tool's limits under a complete ceiling.
func effective(ceiling Limits, asked manifests.Limits) Limits {
	return Limits(asked).or(defaults(ceiling)).narrowed(ceiling)
}

package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-run/caisson/hostfuncs/network"
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
	HTTPBytes manifests.Bytes // bodies in both directions, decompressed. Ceiling: 256 MiB, default 8 MiB
	// Fuel is the number of instructions that a call may execute. By default only the timeout
	// bounds it. The count is exact and the same for equal calls, with one exception: a call that
	// starts the program itself, such as the first one, pays for the start, and a call that resumes a snapshot does not.
	// Calls that the tool makes to other tools use the same fuel.
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
		OpenFiles: 1024, DiskBytes: 1024 * mebibyte, HTTPCalls: 1000, HTTPBytes: 256 * mebibyte,
	}
}

// defaults returns the limits of a tool that requests none. Time and memory default to the
// ceiling.
func defaults(ceiling Limits) Limits {
	return Limits{
		Timeout: ceiling.Timeout, Memory: ceiling.Memory, Output: 256 * kibibyte, Stderr: 64 * kibibyte,
		OpenFiles: 64, DiskBytes: 64 * mebibyte, HTTPCalls: network.DefaultCalls, HTTPBytes: network.DefaultBytes,
	}
}

var (
	errNegativeLimit = errors.New("a limit is negative")
	errTooMuchMemory = fmt.Errorf("the memory limit is over %s, the most that a tool may have", manifests.MaxMemory)
)

// under returns the limits with zeros replaced by the profile's limits.
func (l Limits) under(p manifests.Limits) Limits {
	return Limits{
		Timeout: cmp.Or(l.Timeout, p.Timeout), Memory: cmp.Or(l.Memory, p.Memory), Output: cmp.Or(l.Output, p.Output), Stderr: cmp.Or(l.Stderr, p.Stderr),
		OpenFiles: cmp.Or(l.OpenFiles, p.OpenFiles), DiskBytes: cmp.Or(l.DiskBytes, p.DiskBytes),
		HTTPCalls: cmp.Or(l.HTTPCalls, p.HTTPCalls), HTTPBytes: cmp.Or(l.HTTPBytes, p.HTTPBytes), Fuel: cmp.Or(l.Fuel, p.Fuel),
	}
}

// narrowed returns the smaller of each limit and the profile's. A zero limit of the profile's does not narrow.
func (l Limits) narrowed(p manifests.Limits) Limits {
	return Limits{
		Timeout: smaller(l.Timeout, p.Timeout), Memory: smaller(l.Memory, p.Memory), Output: smaller(l.Output, p.Output), Stderr: smaller(l.Stderr, p.Stderr),
		OpenFiles: smaller(l.OpenFiles, p.OpenFiles), DiskBytes: smaller(l.DiskBytes, p.DiskBytes),
		HTTPCalls: smaller(l.HTTPCalls, p.HTTPCalls), HTTPBytes: smaller(l.HTTPBytes, p.HTTPBytes), Fuel: smaller(l.Fuel, p.Fuel),
	}
}

// smaller returns the smaller of two limits, of which zero is none.
func smaller[N int | int64 | time.Duration | manifests.Bytes](a, b N) N {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// complete returns the limits with zeros replaced by the ceilings.
func (l Limits) complete() (Limits, error) {
	if l.Timeout < 0 || l.Memory < 0 || l.Output < 0 || l.Stderr < 0 || l.OpenFiles < 0 || l.DiskBytes < 0 || l.HTTPCalls < 0 || l.HTTPBytes < 0 || l.Fuel < 0 {
		return Limits{}, fmt.Errorf("%w: %+v", errNegativeLimit, l)
	}
	if l.Memory > manifests.MaxMemory {
		return Limits{}, fmt.Errorf("%w: %s", errTooMuchMemory, l.Memory)
	}
	standard := ceilings()
	return Limits{
		Timeout:   cmp.Or(l.Timeout, standard.Timeout),
		Memory:    cmp.Or(l.Memory, standard.Memory),
		Output:    cmp.Or(l.Output, standard.Output),
		Stderr:    cmp.Or(l.Stderr, standard.Stderr),
		OpenFiles: cmp.Or(l.OpenFiles, standard.OpenFiles),
		DiskBytes: cmp.Or(l.DiskBytes, standard.DiskBytes),
		HTTPCalls: cmp.Or(l.HTTPCalls, standard.HTTPCalls),
		HTTPBytes: cmp.Or(l.HTTPBytes, standard.HTTPBytes),
		Fuel:      l.Fuel,
	}, nil
}

// effective returns a tool's limits under a complete ceiling.
func effective(ceiling Limits, asked manifests.Limits) Limits {
	standard := defaults(ceiling)
	return Limits{
		Timeout:   min(cmp.Or(asked.Timeout, standard.Timeout), ceiling.Timeout),
		Memory:    min(cmp.Or(asked.Memory, standard.Memory), ceiling.Memory),
		Output:    min(cmp.Or(asked.Output, standard.Output), ceiling.Output),
		Stderr:    min(cmp.Or(asked.Stderr, standard.Stderr), ceiling.Stderr),
		OpenFiles: min(cmp.Or(asked.OpenFiles, standard.OpenFiles), ceiling.OpenFiles),
		DiskBytes: min(cmp.Or(asked.DiskBytes, standard.DiskBytes), ceiling.DiskBytes),
		HTTPCalls: min(cmp.Or(asked.HTTPCalls, standard.HTTPCalls), ceiling.HTTPCalls),
		HTTPBytes: min(cmp.Or(asked.HTTPBytes, standard.HTTPBytes), ceiling.HTTPBytes),
		Fuel:      narrower(asked.Fuel, ceiling.Fuel),
	}
}

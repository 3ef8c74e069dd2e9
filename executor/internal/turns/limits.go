package turns

import (
	"fmt"
	"runtime"
	"time"
)

// Limits bound how many calls run and wait. Where a number is zero, the one that is named
// beside it is taken. A negative number is an error.
type Limits struct {
	Running   int           // calls at a time: 4 for each processor that Go uses, at least 16
	PerTenant int           // of one tenant: three quarters of Running, at least 1
	PerTool   int           // of one tenant and tool: half of Running, at least 1
	Waiting   int           // calls of one tenant that may wait; one more is refused: 1,024
	Wait      time.Duration // the longest wait: 30 s
}

// complete returns the limits with the numbers that zeros stand for.
func (l Limits) complete() (Limits, error) {
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"Running", int64(l.Running)}, {"PerTenant", int64(l.PerTenant)}, {"PerTool", int64(l.PerTool)},
		{"Waiting", int64(l.Waiting)}, {"Wait", int64(l.Wait)},
	} {
		if n.value < 0 {
			return Limits{}, &Error{Op: "new", Kind: fmt.Errorf("%w: %s is negative", ErrInvalidLimits, n.name)}
		}
	}
	fill(&l.Running, max(16, 4*runtime.GOMAXPROCS(0)))
	fill(&l.PerTenant, max(1, l.Running/4*3+l.Running%4*3/4)) // no product that could overflow
	fill(&l.PerTool, max(1, l.Running/2))
	fill(&l.Waiting, 1024)
	fill(&l.Wait, 30*time.Second)
	return l, nil
}

func fill[N int | time.Duration](number *N, instead N) {
	if *number == 0 {
		*number = instead
	}
}

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/caisson-run/caisson/runtime"
)

// isolation is how calls are kept apart, as inspect prints it.
type isolation struct {
	Resumed           bool    `json:"resumed"`             // calls go on where the started program first reads its input
	Reason            string  `json:"reason"`              // why they do not; empty if they do
	StartMilliseconds float64 `json:"start_milliseconds"`  // what starting takes; 0 where it is not known
	StartFuel         int64   `json:"start_fuel"`          // instructions
	StartWouldGain    bool    `json:"start_would_gain"`    // snapshot: start would save each call that
	NewInstanceReason string  `json:"new_instance_reason"` // why an instance is not used for a second call; empty if it is
}

func isolationOf(ctx context.Context, t *runtime.Tool) (isolation, error) {
	found, err := t.Isolation(ctx)
	return isolation{
		Resumed: found.Resumed, Reason: found.Reason,
		StartMilliseconds: float64(found.StartTime.Microseconds()) / 1000, StartFuel: found.StartFuel,
		StartWouldGain: found.Gain, NewInstanceReason: found.NewInstances,
	}, err
}

func (i *isolation) lines() []string {
	if i == nil {
		return []string{"fresh for every call"}
	}
	cost := fmt.Sprintf("%s and %d instructions", time.Duration(i.StartMilliseconds*float64(time.Millisecond)).Round(10*time.Microsecond), i.StartFuel)
	lines := []string{"fresh for every call: each starts the program anew", "reason: " + i.Reason}
	switch {
	case i.Resumed:
		lines = []string{
			"fresh for every call: each resumes the program where it first reads its input",
			"that saves it the start, " + cost,
		}
	case i.StartWouldGain:
		lines = append(lines, "snapshot: start in the manifest would save each call the start, "+cost)
	}
	if i.NewInstanceReason != "" {
		lines = append(lines, "each call has a new instance: "+i.NewInstanceReason)
	}
	return lines
}

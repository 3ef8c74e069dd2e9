package benchmark

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// warmStarts is how often a start with compiled code is repeated; the shortest counts.
const warmStarts = 3

// measureStartup starts a guest with nothing compiled and then, several times, with
// what that left in dir. It reports the time to the first answer.
func measureStartup(ctx context.Context, b backend, dir string, in input) (Startup, error) {
	var measured Startup
	for i := range 1 + warmStarts {
		took, err := firstAnswer(ctx, b, dir, in)
		if err != nil {
			return Startup{}, err
		}
		switch {
		case i == 0:
			measured.Cold = microseconds(took)
		case i == 1 || microseconds(took) < measured.Warm:
			measured.Warm = microseconds(took)
		}
	}
	return measured, nil
}

func firstAnswer(ctx context.Context, b backend, dir string, in input) (took time.Duration, err error) {
	start := time.Now()
	s, err := b.open(ctx, dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	c, err := s.caller(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.close(ctx)) }()
	output, err := c.call(ctx, in)
	took = time.Since(start)
	if err != nil {
		return 0, err
	}
	if err := in.expected.Check(output); err != nil {
		return 0, fmt.Errorf("the first answer: %w", err)
	}
	return took, nil
}

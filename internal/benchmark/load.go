package benchmark

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"time"
)

// scheme is a guest that is ready to be called in one way.
type scheme struct {
	name    Scheme
	session session
}

// contestant is one scheme's callers and what their calls took.
type contestant struct {
	scheme   scheme
	callers  []*measured
	duration time.Duration // in which the calls were made
}

// measured is a caller under measurement. One goroutine at a time uses it.
type measured struct {
	caller
	check checker
	took  []time.Duration // each call
}

func (m *measured) answer(ctx context.Context, in input) (time.Duration, error) {
	start := time.Now()
	output, err := m.call(ctx, in)
	took := time.Since(start)
	if err != nil {
		return 0, err
	}
	call := 1
	if counting, ok := m.caller.(interface{ calls() int }); ok {
		call = counting.calls()
	}
	return took, m.check.check(output, call)
}

// callUntil calls until the time has come, and at least once.
func (m *measured) callUntil(ctx context.Context, in input, end time.Time) error {
	for {
		took, err := m.answer(ctx, in)
		if err != nil {
			return err
		}
		m.took = append(m.took, took)
		if !time.Now().Before(end) {
			return ctx.Err()
		}
	}
}

// compete measures schemes in turns, each for the time given in all, spread over the rounds.
func compete(ctx context.Context, schemes []scheme, in input, callers, rounds int, each time.Duration) (rows []Row, err error) {
	var contestants []*contestant
	defer func() {
		for _, c := range contestants {
			err = errors.Join(err, c.close(ctx))
		}
	}()
	for _, s := range schemes {
		c := &contestant{scheme: s}
		contestants = append(contestants, c)
		if err := c.prepare(ctx, in, callers); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	for round := range rounds {
		for i := range contestants {
			c := contestants[(i+round)%len(contestants)]
			if err := c.turn(ctx, in, each/time.Duration(rounds)); err != nil {
				return nil, fmt.Errorf("%s: %w", c.scheme.name, err)
			}
		}
	}
	for _, c := range contestants {
		rows = append(rows, c.row(len(in.expected.Input)))
	}
	ratios(rows)
	return rows, nil
}

// prepare makes the callers. The first answers a call that is not measured.
func (c *contestant) prepare(ctx context.Context, in input, callers int) error {
	for range callers {
		made, err := c.scheme.session.caller(ctx)
		if err != nil {
			return err
		}
		c.callers = append(c.callers, &measured{caller: made, check: checker{expected: in.expected}})
	}
	_, err := c.callers[0].answer(ctx, in)
	return err
}

// turn lets all callers call at the same time.
func (c *contestant) turn(ctx context.Context, in input, duration time.Duration) error {
	goruntime.GC() // what another scheme left behind is not this one's to clear away
	start := time.Now()
	err := together(c.callers, func(m *measured) error { return m.callUntil(ctx, in, start.Add(duration)) })
	c.duration += time.Since(start)
	return err
}

// together does the same with all elements at the same time.
func together[T any](elements []T, do func(T) error) error {
	var wait sync.WaitGroup
	failures := make([]error, len(elements))
	for i, element := range elements {
		wait.Go(func() { failures[i] = do(element) })
	}
	wait.Wait()
	for _, failure := range failures {
		if failure != nil {
			return failure // the others are most likely the same
		}
	}
	return nil
}

func (c *contestant) row(payload int) Row {
	var took []time.Duration
	for _, m := range c.callers {
		took = append(took, m.took...)
	}
	slices.Sort(took)
	return Row{
		Payload: payload, Scheme: c.scheme.name, Callers: len(c.callers),
		P50: microseconds(percentile(took, 50)), P99: microseconds(percentile(took, 99)),
		CallsPerSecond: float64(len(took)) / c.duration.Seconds(),
	}
}

func (c *contestant) close(ctx context.Context) (err error) {
	for _, m := range c.callers {
		err = errors.Join(err, m.close(ctx))
	}
	return err
}

// percentile returns the smallest of the sorted values that so many percent do not exceed.
func percentile(sorted []time.Duration, percent int) time.Duration {
	return sorted[max((len(sorted)*percent+99)/100-1, 0)]
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

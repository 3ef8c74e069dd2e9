package benchmark

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
)

// scheme is a guest that is ready to be called in one way.
type scheme struct {
	name Scheme
	session
}

// contestant is the callers of one scheme and the duration of their calls.
type contestant struct {
	scheme   scheme
	callers  []*measured
	duration time.Duration // of all turns
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

// callUntil calls the guest until the given time, and at least once.
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

// compete measures schemes in turns, each for the given time in total, divided into rounds.
func compete(
	ctx context.Context, schemes []scheme, in input, callers, rounds int, each time.Duration,
) (rows []Row, err error) {
	var contestants []*contestant
	defer func() { err = errors.Join(err, closeAll(ctx, contestants)) }()
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

// prepare creates the callers. The first makes one call that is not measured.
func (c *contestant) prepare(ctx context.Context, in input, callers int) error {
	for range callers {
		made, err := c.scheme.caller(ctx)
		if err != nil {
			return err
		}
		c.callers = append(c.callers, &measured{caller: made, check: checker{expected: in.expected}})
	}
	_, err := c.callers[0].answer(ctx, in)
	return err
}

// turn runs all callers concurrently.
func (c *contestant) turn(ctx context.Context, in input, duration time.Duration) error {
	goruntime.GC() // of the previous scheme's garbage
	start := time.Now()
	err := together(c.callers, func(m *measured) error { return m.callUntil(ctx, in, start.Add(duration)) })
	c.duration += time.Since(start)
	return err
}

// together runs a function on all elements concurrently.
func together[T any](elements []T, do func(T) error) error {
	var wait sync.WaitGroup
	failures := make([]error, len(elements))
	for i, element := range elements {
		wait.Go(func() { failures[i] = do(element) })
	}
	wait.Wait()
	return cmp.Or(failures...) // the others are most likely the same
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

func (c *contestant) close(ctx context.Context) error { return closeAll(ctx, c.callers) }

// percentile returns the smallest of the sorted values that is not exceeded by so many percent.
func percentile(sorted []time.Duration, percent int) time.Duration {
	return sorted[max((len(sorted)*percent+99)/100-1, 0)]
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// checker checks the answers of one caller. It parses the first answer and compares the others with
// it, because parsing takes longer than a call.
type checker struct {
	expected guests.Call
	correct  []byte
}

// check checks the answer to a call, given its number among the calls of its instance.
func (c *checker) check(output []byte, call int) error {
	if call > 1 {
		var err error
		if output, err = asFirst(output, call); err != nil {
			return err
		}
	}
	if c.correct != nil && bytes.Equal(output, c.correct) {
		return nil
	}
	if err := c.expected.Check(output); err != nil {
		return err
	}
	c.correct = bytes.Clone(output)
	return nil
}

// asFirst returns the answer that the first call of an instance would have got instead of this one.
func asFirst(output []byte, call int) ([]byte, error) {
	const key = `"calls":`
	at := bytes.LastIndex(output, []byte(key))
	if at < 0 {
		return nil, fmt.Errorf("%w: it counts no calls", guests.ErrAnswer)
	}
	head, count := output[:at+len(key):at+len(key)], bytes.Trim(output[at+len(key):], " \n}")
	if string(count) != strconv.Itoa(call) {
		return nil, fmt.Errorf("%w: it counts %q calls instead of %d", guests.ErrAnswer, count, call)
	}
	return append(head, "1}"...), nil
}

package wasi

import (
	"context"
	"encoding/binary"
	"math"
	"time"
)

var clockFunctions = []function{
	{"clock_res_get", "ii", clockResolution},
	{"clock_time_get", "iIi", clockTime},
	{"poll_oneoff", "iiii", poll},
}

// The clock ids.
const (
	realtime uint32 = iota
	monotonic
	processCPUTime
	threadCPUTime // the last
)

// clocks holds the readings of all clocks at one moment, in nanoseconds.
type clocks struct {
	working             bool
	realtime, monotonic uint64
}

// clocks reads the clocks. The monotonic clock starts at 1, because some programs take 0 to mean
// that the clock does not work.
func (s *System) clocks() clocks {
	if s.Now == nil {
		return clocks{}
	}
	now := s.Now()
	return clocks{true, nanoseconds(now), uint64(max(now.Sub(s.Started), 0)) + 1}
}

// read returns one clock's time. A guest does not share its instance, so the monotonic clock
// serves as its CPU clocks.
func (c clocks) read(id uint32) (uint64, error) {
	switch {
	case id > threadCPUTime:
		return 0, EINVAL
	case !c.working:
		return 0, ENOTSUP
	case id == realtime:
		return c.realtime, nil
	}
	return c.monotonic, nil
}

func clockResolution(c *call) error {
	if _, err := c.system.clocks().read(c.u32(0)); err != nil {
		return err
	}
	return c.putU64(c.u32(1), 1)
}

func clockTime(c *call) error {
	now, err := c.system.clocks().read(c.u32(0))
	if err != nil {
		return err
	}
	return c.putU64(c.u32(2), now)
}

const (
	subscriptionSize = 48
	draftSize        = 56 // of a subscription in preview 0, where a clock has an identifier before its other fields
	eventSize        = 32

	eventClock   = 0
	eventFDRead  = 1
	eventFDWrite = 2

	subscriptionAbsolute = 1
)

// subscription is one event that poll_oneoff waits for.
type subscription struct {
	userdata uint64
	kind     byte
	wait     time.Duration // for clocks: from the start of the poll
	number   uint32        // for descriptors
	err      error         // an invalid subscription is ready at once, with this error
}

// ready reports whether the event has occurred, given the time elapsed since the start of the poll.
func (s subscription) ready(elapsed time.Duration) bool {
	return s.kind != eventClock || s.err != nil || s.wait <= elapsed
}

// poll waits for the first of the subscribed events. Files and streams are always ready, so it
// waits only for clocks, and only if all subscriptions are for clocks.
//
// It does not copy the subscriptions, since there may be millions. It reads them twice: first to
// find the shortest wait, then to write the events. Both passes use the clock readings from the
// start of the poll.
func poll(c *call) error {
	in, out, count := c.u32(0), c.u32(1), c.u32(2)
	if count == 0 {
		return EINVAL
	}
	size := uint32(subscriptionSize)
	if c.draft {
		size = draftSize
	}
	if uint64(count)*uint64(size) > math.MaxUint32 {
		return EFAULT
	}
	subscriptions, ok := c.memory.View(in, count*size)
	if !ok {
		return EFAULT
	}
	events, ok := c.memory.View(out, count*eventSize)
	if !ok {
		return EFAULT
	}

	start := c.system.clocks()
	shortest := time.Duration(math.MaxInt64)
	err := c.eachSubscription(subscriptions, int(size), start, func(s subscription) {
		if s.ready(0) {
			shortest = 0
		} else {
			shortest = min(shortest, s.wait)
		}
	})
	if err != nil {
		return err
	}
	if err := c.sleep(shortest); err != nil {
		return err
	}
	elapsed := max(shortest, time.Duration(c.system.clocks().monotonic-start.monotonic))
	written := uint32(0)
	err = c.eachSubscription(subscriptions, int(size), start, func(s subscription) {
		if s.ready(elapsed) {
			c.putEvent(events[written*eventSize:], s)
			written++
		}
	})
	if err != nil {
		return err
	}
	return c.putU32(c.u32(3), written)
}

// eachSubscription calls do for each subscription in the array. It checks the context once per
// 1,024 subscriptions.
func (c *call) eachSubscription(array []byte, size int, now clocks, do func(subscription)) error {
	for i := 0; i < len(array); i += size {
		if i%(1024*size) == 0 && c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
		s, err := c.subscription(array[i:i+size], now)
		if err != nil {
			return err
		}
		do(s)
	}
	return nil
}

func (c *call) subscription(bytes []byte, now clocks) (subscription, error) {
	s := subscription{userdata: binary.LittleEndian.Uint64(bytes), kind: bytes[8]}
	switch s.kind {
	case eventClock:
		fields := bytes[len(bytes)-32:]
		timeout := binary.LittleEndian.Uint64(fields[8:])
		clock, err := now.read(binary.LittleEndian.Uint32(fields))
		s.err = err
		if binary.LittleEndian.Uint16(fields[24:])&subscriptionAbsolute != 0 {
			timeout -= min(timeout, clock)
		}
		s.wait = time.Duration(min(timeout, math.MaxInt64))
	case eventFDRead, eventFDWrite:
		s.number = binary.LittleEndian.Uint32(bytes[16:])
		_, s.err = c.system.descriptor(s.number)
	default:
		return s, EINVAL
	}
	return s, nil
}

// sleep waits for d. If the call ends first, it returns an error, which ends the guest. Returning
// early without one would let the guest continue as if it had slept.
func (c *call) sleep(d time.Duration) error {
	if d <= 0 {
		return context.Cause(c.ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}

func (c *call) putEvent(event []byte, s subscription) {
	clear(event[:eventSize])
	binary.LittleEndian.PutUint64(event, s.userdata)
	number, _ := s.err.(Errno)
	binary.LittleEndian.PutUint16(event[8:], uint16(number))
	event[10] = s.kind
	if s.kind == eventFDRead && s.err == nil {
		binary.LittleEndian.PutUint64(event[16:], c.readable(s.number))
	}
}

// readable returns how many bytes can be read from a descriptor, or 1 if that is not known.
func (c *call) readable(number uint32) uint64 {
	if d, err := c.system.descriptor(number); err == nil && d.stdin {
		return uint64(len(c.system.Stdin))
	}
	return 1
}

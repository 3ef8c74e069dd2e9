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
func (c clocks) read(id uint32) (uint64, Errno) {
	switch {
	case id > threadCPUTime:
		return 0, EINVAL
	case !c.working:
		return 0, ENOTSUP
	case id == realtime:
		return c.realtime, Success
	}
	return c.monotonic, Success
}

func clockResolution(c *call) (Errno, error) {
	if _, errno := c.system.clocks().read(c.u32(0)); errno != Success {
		return errno, nil
	}
	return c.putU64(c.u32(1), 1), nil
}

func clockTime(c *call) (Errno, error) {
	now, errno := c.system.clocks().read(c.u32(0))
	if errno != Success {
		return errno, nil
	}
	return c.putU64(c.u32(2), now), nil
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
	errno    Errno         // an invalid subscription is ready at once, with this error
}

// ready reports whether the event has occurred, given the time elapsed since the start of the poll.
func (s subscription) ready(elapsed time.Duration) bool {
	return s.kind != eventClock || s.errno != Success || s.wait <= elapsed
}

// poll waits for the first of the subscribed events. Files and streams are always ready, so it
// waits only for clocks, and only if all subscriptions are for clocks.
//
// It does not copy the subscriptions, since there may be millions. It reads them twice: first to
// find the shortest wait, then to write the events. Both passes use the clock readings from the
// start of the poll.
func poll(c *call) (Errno, error) {
	in, out, count := c.u32(0), c.u32(1), c.u32(2)
	if count == 0 {
		return EINVAL, nil
	}
	size := uint32(subscriptionSize)
	if c.draft {
		size = draftSize
	}
	if uint64(count)*uint64(size) > math.MaxUint32 {
		return EFAULT, nil
	}
	subscriptions, ok := c.memory.View(in, count*size)
	if !ok {
		return EFAULT, nil
	}
	events, ok := c.memory.View(out, count*eventSize)
	if !ok {
		return EFAULT, nil
	}

	start := c.system.clocks()
	shortest := time.Duration(math.MaxInt64)
	errno, err := c.eachSubscription(subscriptions, int(size), start, func(s subscription) {
		if s.ready(0) {
			shortest = 0
		} else {
			shortest = min(shortest, s.wait)
		}
	})
	if errno != Success || err != nil {
		return errno, err
	}
	if err := c.sleep(shortest); err != nil {
		return Success, err
	}
	elapsed := max(shortest, time.Duration(c.system.clocks().monotonic-start.monotonic))
	written := uint32(0)
	errno, err = c.eachSubscription(subscriptions, int(size), start, func(s subscription) {
		if s.ready(elapsed) {
			c.putEvent(events[written*eventSize:], s)
			written++
		}
	})
	if errno != Success || err != nil {
		return errno, err
	}
	return c.putU32(c.u32(3), written), nil
}

// eachSubscription calls do for each subscription in the array. It checks the context once per
// 1,024 subscriptions.
func (c *call) eachSubscription(array []byte, size int, now clocks, do func(subscription)) (Errno, error) {
	for i := 0; i < len(array); i += size {
		if i%(1024*size) == 0 && c.ctx.Err() != nil {
			return Success, context.Cause(c.ctx)
		}
		s, errno := c.subscription(array[i:i+size], now)
		if errno != Success {
			return errno, nil
		}
		do(s)
	}
	return Success, nil
}

func (c *call) subscription(bytes []byte, now clocks) (subscription, Errno) {
	s := subscription{userdata: binary.LittleEndian.Uint64(bytes), kind: bytes[8]}
	switch s.kind {
	case eventClock:
		fields := bytes[len(bytes)-32:]
		timeout := binary.LittleEndian.Uint64(fields[8:])
		clock, errno := now.read(binary.LittleEndian.Uint32(fields))
		s.errno = errno
		if binary.LittleEndian.Uint16(fields[24:])&subscriptionAbsolute != 0 {
			timeout -= min(timeout, clock)
		}
		s.wait = time.Duration(min(timeout, math.MaxInt64))
	case eventFDRead, eventFDWrite:
		s.number = binary.LittleEndian.Uint32(bytes[16:])
		_, s.errno = c.system.descriptor(s.number)
	default:
		return s, EINVAL
	}
	return s, Success
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
	binary.LittleEndian.PutUint16(event[8:], uint16(s.errno))
	event[10] = s.kind
	if s.kind == eventFDRead && s.errno == Success {
		binary.LittleEndian.PutUint64(event[16:], c.readable(s.number))
	}
}

// readable returns how many bytes can be read from a descriptor, or 1 if that is not known.
func (c *call) readable(number uint32) uint64 {
	d, errno := c.system.descriptor(number)
	if errno == Success && d.stdin {
		return uint64(len(c.system.Stdin))
	}
	return 1
}

package wasi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/internal/journal"
	"github.com/caisson-run/caisson/runtime/internal/inside"
)

// System is everything that one call's guest can access through WASI. Each call needs its own,
// passed to the guest's host functions with [With]. The zero value has no arguments, environment,
// input, output or files.
//
// A System serves one instance, which is single-threaded. It is not safe for concurrent use.
type System struct {
	Args        []string // the program's name first
	Environment []string // KEY=VALUE
	Stdin       []byte
	Stdout      *Output // if nil, writing fails with EBADF
	Stderr      *Output
	Files       *files.View // if nil, no directory is preopened
	Random      io.Reader   // if nil, random_get fails with EIO
	// Now is the wall clock. The other clocks count from Started. If Now is nil, reading a clock
	// fails with ENOTSUP.
	Now     func() time.Time
	Started time.Time

	// OnInput, if not nil, is called once, just before the guest first reads Stdin.
	OnInput func()

	// Sockets keeps the receipts of guests that ask for sockets, which no guest has.
	Sockets journal.Journal

	// Devices are nil for a guest that imports host functions where it needs them.
	Devices *Devices

	// Starting is set for a program that is started without a call. Functions that depend on a
	// call then end the program with a [*StartError]. Files must then be of a [files.Outline].
	Starting bool

	descriptors []*descriptor // by number, nil if closed; see open
	preopened   int           // how many there are when the guest begins
	isResumed   bool          // the guest begins where a Start ended
	call        call          // the current call
	done        int           // work done since the deadline was last checked; see maxPiece
	listed      *descriptor   // the directory of listing; may be nil
	listing     []guestfiles.Entry
	inside      inside.Context[System]
}

// With returns a context in which the guest's WASI calls use the system. The numbers of the preopened
// directories begin at 3. For a system that has been resumed and whose guest did not run, it begins anew.
func With(ctx context.Context, s *System) context.Context {
	if s.isResumed && s.Files != nil {
		s.Files.Restart()
	}
	if s.Files != nil {
		s.Files.SetContext(ctx)
	}
	s.descriptors, s.isResumed, s.listed, s.listing = nil, false, nil, nil
	return s.inside.Hold(ctx, s)
}

// open gives the guest the descriptors that each one begins with, unless it has them. A guest that uses
// none, as most plug-ins, takes no time for them.
func (s *System) open() {
	if s.descriptors != nil {
		return
	}
	room := new(struct { // for most guests
		first   [4]descriptor
		numbers [8]*descriptor
	})
	first := append(room.first[:0], descriptor{stdin: true}, descriptor{output: s.Stdout, number: 1},
		descriptor{output: s.Stderr, number: 2})
	if s.Files != nil {
		for _, preopen := range s.Files.Preopens() {
			first = append(first, descriptor{dir: preopen.Dir, preopen: preopen.Path, number: len(first)})
		}
	}
	s.descriptors = room.numbers[:0]
	for number := range first {
		s.descriptors = append(s.descriptors, &first[number])
	}
	s.preopened = len(s.descriptors)
}

// errNoSystem means that a guest ran without With.
var errNoSystem = errors.New("wasi: the context holds no system")

// ExitError ends a guest that calls proc_exit. It is not a failure if Code is 0.
type ExitError struct{ Code uint32 }

func (e *ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// OutputError ends a guest that wrote more than the limit of an [Output].
type OutputError struct{ Limit int64 }

func (e *OutputError) Error() string { return fmt.Sprintf("more than %d bytes of output", e.Limit) }

// Output collects a guest's output, up to a limit in bytes. Beyond the limit, a strict output ends the guest with an
// [*OutputError]; any other output keeps only the end of the rest.
type Output struct {
	Limit  int64
	Strict bool
	Tail   int // how many bytes of the end an output that is not strict keeps beyond Limit
	Bytes  []byte
	// OnWrite, if not nil, is called with all that is written, before it is.
	OnWrite func(data []byte)

	end *ring // of the output after Bytes; nil if there is none
}

// ring keeps the last bytes that are written to it.
type ring struct {
	bytes   []byte
	next    int   // where it is written next
	written int64 // bytes, kept or not
}

// Write implements [io.Writer]. It fails with an [*OutputError] or not at all.
func (o *Output) Write(data []byte) (int, error) {
	if o.OnWrite != nil {
		o.OnWrite(data)
	}
	room := o.Limit - int64(len(o.Bytes))
	if int64(len(data)) <= room {
		o.Bytes = append(o.Bytes, data...)
		return len(data), nil
	}
	o.Bytes = append(o.Bytes, data[:room]...)
	if o.Strict {
		return int(room), &OutputError{Limit: o.Limit}
	}
	if o.end == nil {
		o.end = new(ring)
	}
	o.end.write(data[room:], o.Tail)
	return len(data), nil
}

// write writes data to a ring of some size.
func (r *ring) write(data []byte, size int) {
	r.written += int64(len(data))
	data = data[max(0, len(data)-size):]
	if grow := min(len(data), size-len(r.bytes)); grow > 0 {
		r.bytes, data = append(r.bytes, data[:grow]...), data[grow:]
	}
	for len(data) > 0 {
		n := copy(r.bytes[r.next:], data)
		r.next, data = (r.next+n)%size, data[n:]
	}
}

// End returns the last bytes that the guest wrote after Bytes, and how many bytes are missing between the two.
func (o *Output) End() (end []byte, missing int64) {
	r := o.end
	if r == nil {
		return nil, 0
	}
	return slices.Concat(r.bytes[r.next:], r.bytes[:r.next]), r.written - int64(len(r.bytes))
}

// descriptor is an open file descriptor. Exactly one of stdin, output, device, file and dir is set. None is
// set for a standard stream that the call does not have.
type descriptor struct {
	stdin   bool
	output  *Output
	device  device
	file    *files.File
	dir     *files.Dir
	preopen string // the guest path of a preopened directory; otherwise empty
	number  int    // under which the guest found it when it began; otherwise opened

	flags uint16   // fdflags
	mode  openMode // for files
}

// standardStreams is the number of standard streams, which have the lowest descriptors.
const standardStreams = 3

// opened is the number of descriptors that the guest opened.
const opened = -1

type openMode struct{ read, write bool }

func (s *System) descriptor(number uint32) (*descriptor, error) {
	s.open()
	if uint64(number) >= uint64(len(s.descriptors)) || s.descriptors[number] == nil {
		return nil, EBADF
	}
	return s.descriptors[number], nil
}

func (s *System) file(number uint32) (*files.File, error) {
	d, err := s.descriptor(number)
	switch {
	case err != nil:
		return nil, err
	case d.dir != nil:
		return nil, EBADF
	case d.file == nil:
		return nil, ESPIPE
	}
	return d.file, nil
}

func (s *System) directory(number uint32) (*files.Dir, error) {
	d, err := s.descriptor(number)
	switch {
	case err != nil:
		return nil, err
	case d.dir == nil:
		return nil, ENOTDIR
	}
	return d.dir, nil
}

// add gives a descriptor the lowest free number above the standard streams.
func (s *System) add(d *descriptor) uint32 {
	s.open()
	for number := standardStreams; number < len(s.descriptors); number++ {
		if s.descriptors[number] == nil {
			s.descriptors[number] = d
			return uint32(number)
		}
	}
	s.descriptors = append(s.descriptors, d)
	return uint32(len(s.descriptors) - 1)
}

// close closes the descriptor's file or directory. Preopened directories belong to the view.
func (d *descriptor) close() error {
	switch {
	case d.file != nil:
		return d.file.Close()
	case d.dir != nil && d.preopen == "":
		return d.dir.Close()
	}
	return nil
}

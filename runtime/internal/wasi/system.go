package wasi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/caisson-run/caisson/hostfuncs/files"
)

// System is what one call's guest sees of the world. Make one for each call, fill in
// what the guest may have, and hand it to the guest's host functions with [With].
// The zero value has no arguments, environment, input, output or files.
//
// It serves one instance, which is single-threaded, and is not safe for concurrent use.
type System struct {
	Args        []string // the program's name first
	Environment []string // KEY=VALUE
	Stdin       []byte
	Stdout      *Output // nil: writing fails with EBADF
	Stderr      *Output
	Files       *files.View // nil: no directory is preopened
	Random      io.Reader   // nil: random_get fails with EIO
	// Now and Started give the clocks: the wall clock is Now, the others count from
	// Started. Nil Now: the clocks fail with ENOTSUP.
	Now     func() time.Time
	Started time.Time

	// Starting, if not nil, is for a program that is started without a call: a function that
	// would depend on one ends it with a [*StartError].
	Starting *Starting

	descriptors []*descriptor // by number; nil where closed
	standard    [3]descriptor // the first of them
	numbers     [8]*descriptor
	call        call        // the one under way
	done        int         // what reads and writes did since the clock was last looked at; see maxPiece
	listed      *descriptor // whose listing is kept; nil for none
	listing     []files.Entry
}

// systemKey is where a System stands in a context.
type systemKey struct{}

// With returns a context in which the guest's WASI calls act on the system. It opens
// the preopened directories, whose numbers begin at 3.
func With(ctx context.Context, s *System) context.Context {
	s.standard = [3]descriptor{{stdin: true}, {output: s.Stdout}, {output: s.Stderr}}
	s.descriptors = append(s.numbers[:0], &s.standard[0], &s.standard[1], &s.standard[2])
	if s.Files != nil {
		s.Files.SetContext(ctx)
		for _, preopen := range s.Files.Preopens() {
			s.descriptors = append(s.descriptors, &descriptor{dir: preopen.Dir, preopen: preopen.Path})
		}
	}
	if s.Starting != nil {
		for _, path := range s.Starting.Preopens {
			s.descriptors = append(s.descriptors, &descriptor{preopen: path})
		}
	}
	return context.WithValue(ctx, systemKey{}, s)
}

// errNoSystem means that a guest ran without With.
var errNoSystem = errors.New("wasi: the context holds no system")

// ExitError is how a guest that calls proc_exit ends. It is not a failure if Code is 0.
type ExitError struct{ Code uint32 }

func (e *ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// OutputError ends a guest that wrote more than an [Output] holds.
type OutputError struct{ Limit int64 }

func (e *OutputError) Error() string { return fmt.Sprintf("more than %d bytes of output", e.Limit) }

// Output collects what a guest writes, up to a limit in bytes. Beyond it, a strict
// output ends the guest with an [*OutputError], and any other drops what comes.
type Output struct {
	Limit   int64
	Strict  bool
	Bytes   []byte
	Dropped bool // something was dropped
}

func (o *Output) write(data []byte) error {
	room := o.Limit - int64(len(o.Bytes))
	if int64(len(data)) <= room {
		o.Bytes = append(o.Bytes, data...)
		return nil
	}
	o.Bytes = append(o.Bytes, data[:room]...)
	o.Dropped = true
	if o.Strict {
		return &OutputError{Limit: o.Limit}
	}
	return nil
}

// descriptor is an open file number. Exactly one of stdin, output, file and dir is set,
// save for a standard stream that the call doesn't have.
type descriptor struct {
	stdin   bool
	output  *Output
	file    *files.File
	dir     *files.Dir
	preopen string // the guest path of a preopened directory, else empty

	flags uint16   // fdflags
	mode  openMode // for files
}

type openMode struct{ read, write bool }

func (s *System) descriptor(number uint32) (*descriptor, Errno) {
	if uint64(number) >= uint64(len(s.descriptors)) || s.descriptors[number] == nil {
		return nil, EBADF
	}
	return s.descriptors[number], Success
}

func (s *System) file(number uint32) (*files.File, Errno) {
	d, errno := s.descriptor(number)
	switch {
	case errno != Success:
		return nil, errno
	case d.dir != nil:
		return nil, EBADF
	case d.file == nil:
		return nil, ESPIPE
	}
	return d.file, Success
}

func (s *System) directory(number uint32) (*files.Dir, Errno) {
	d, errno := s.descriptor(number)
	switch {
	case errno != Success:
		return nil, errno
	case d.dir == nil:
		return nil, ENOTDIR
	}
	return d.dir, Success
}

// add gives a descriptor the lowest free number above the standard streams.
func (s *System) add(d *descriptor) uint32 {
	for number := 3; number < len(s.descriptors); number++ {
		if s.descriptors[number] == nil {
			s.descriptors[number] = d
			return uint32(number)
		}
	}
	s.descriptors = append(s.descriptors, d)
	return uint32(len(s.descriptors) - 1)
}

// close closes what a descriptor holds. Preopened directories belong to the view.
func (d *descriptor) close() error {
	switch {
	case d.file != nil:
		return d.file.Close()
	case d.dir != nil && d.preopen == "":
		return d.dir.Close()
	}
	return nil
}

package wasi

import (
	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/guestfiles"
)

// A program that is started without a call (System.Starting) gets the same answers as in each call
// of its tool, by the same code. They cannot depend on the call, because the system has nothing of
// one: its Files are of a [files.Outline]. Whatever would need a call, or has an effect, ends the
// program with a [*StartError].

// StartError ends a program that is started without a call and, before it reads its input, calls a
// function that depends on the call or has an effect.
type StartError struct {
	Function string
	Path     string // the guest path that the function needed; empty if it was not about one
}

func (e *StartError) Error() string {
	text := "it calls " + e.Function
	if e.Path != "" {
		text += " on " + e.Path
	}
	return text + " before it reads its input"
}

// neverAtStart holds the functions that end a program while it starts, whatever their arguments:
// those that end it anyway, the one that waits and tells how much input there is, and those that
// leave a receipt.
var neverAtStart = map[string]bool{"poll_oneoff": true, "proc_exit": true, "proc_raise": true, "sock_open": true,
	"sock_getaddrinfo": true}

// startError returns the error that ends a starting program after a function, or nil.
func (s *System) startError(function string) error {
	if s.Files != nil && s.Files.Needs() != "" {
		return &StartError{Function: function, Path: s.Files.Needs()}
	}
	return nil
}

// Start is the state that a program, started without a call, left in its system. It is immutable, and calls may resume
// it concurrently.
type Start struct {
	files       *files.View
	descriptors []*descriptor // by number; nil if closed
	listed      int           // the number of the descriptor that was listed last, or 0
	listing     []guestfiles.Entry
	changed     bool // false if the descriptors are as each call finds them
}

// Start returns the state that the program left in the system. The system must not be used afterwards, and no longer
// refers to the instance.
func (s *System) Start() *Start {
	s.call = call{}
	s.open()
	start := &Start{files: s.Files, changed: len(s.descriptors) != s.preopened}
	for number, d := range s.descriptors {
		if d == nil {
			start.descriptors, start.changed = append(start.descriptors, nil), true
			continue
		}
		if d == s.listed {
			start.listed, start.listing, start.changed = number, s.listing, true
		}
		start.changed = start.changed || d.number != number || d.flags != 0
		start.descriptors = append(start.descriptors, d)
	}
	return start
}

// Resume gives the system of a call the state that the program left when it was started. It must be called after
// [With], which undoes it, and before the guest runs.
func (s *System) Resume(start *Start) {
	s.isResumed = true
	if s.Files != nil && start.files != nil {
		s.Files.Resume(start.files)
	}
	if !start.changed {
		return
	}
	s.open()
	own := append([]*descriptor(nil), s.descriptors...)
	s.descriptors = s.descriptors[:0]
	for number, before := range start.descriptors {
		d := s.resumeDescriptor(before, own)
		if start.listed == number && start.listing != nil {
			s.listed, s.listing = d, start.listing
		}
		s.descriptors = append(s.descriptors, d)
	}
}

// resumeDescriptor returns the descriptor of this call that belongs to one of the start. Own are the
// descriptors that the call begins with.
func (s *System) resumeDescriptor(d *descriptor, own []*descriptor) *descriptor {
	switch {
	case d == nil:
		return nil
	case d.number != opened:
		again := own[d.number]
		again.flags = d.flags
		return again
	case d.file != nil:
		return &descriptor{file: s.Files.ReopenFile(d.file), number: opened, flags: d.flags, mode: d.mode}
	}
	return &descriptor{dir: s.Files.ReopenDir(d.dir), number: opened, flags: d.flags, mode: d.mode}
}

package registry

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrDuplicate means that a name was rejected because it is taken. The error is a [*DuplicateError].
	ErrDuplicate = errors.New("duplicate name")
	// ErrInvalidTool means that a tool cannot be registered under any name.
	ErrInvalidTool = errors.New("invalid tool")
	// ErrSource means that a source of manifests cannot be read.
	ErrSource = errors.New("invalid source")
	// ErrUnread means that something in a source is, or looks like, a manifest that cannot be read.
	ErrUnread = errors.New("unreadable manifest")
	// ErrClosed means that the registry, or the one that owns the tool, was closed.
	ErrClosed = errors.New("closed")
)

// Error is a failure of the registry itself. Failures of calls are [tool.Error]s.
type Error struct {
	Op   string // "register", "load", "scan", "close"
	Name string // the tool, source or file concerned; may be empty
	// Err is the cause. It wraps ErrInvalidTool, ErrSource, ErrUnread, ErrClosed, ErrDuplicate, a
	// context's error, or the error of a manifest, a source or a tool.
	Err error
}

// Error returns the operation, the name and the cause.
func (e *Error) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("registry: %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("registry: %s %s: %v", e.Op, e.Name, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Origin says where a name comes from.
type Origin struct {
	Name   string `json:"name"`
	Source string `json:"source"` // the source's String; "" for tools that a program adds
	File   string `json:"file"`   // the manifest's path
	Alias  bool   `json:"alias"`  // whether Name is an alias of the tool
	// Retired says whether Name is that of a former tool, which the tool replaces.
	Retired bool `json:"retired"`
}

// isName reports whether it is the tool's own name.
func (o Origin) isName() bool { return !o.Alias && !o.Retired }

// String returns the name and its origin.
func (o Origin) String() string {
	var b strings.Builder
	switch {
	case o.Alias:
		b.WriteString("alias ")
	case o.Retired:
		b.WriteString("retired name ")
	}
	fmt.Fprintf(&b, "%q", o.Name)
	switch {
	case o.File != "":
		b.WriteString(" of " + o.File)
	case o.Source != "":
		b.WriteString(" of " + o.Source)
	}
	return b.String()
}

// LookAlike is a reason for rejecting a name: a reader would mistake it for another one.
const LookAlike = "look_alike"

// DuplicateError reports one rejected name. It wraps [ErrDuplicate].
type DuplicateError struct {
	Name    string `json:"name"`    // the rejected name: Dropped.Name
	Kept    Origin `json:"kept"`    // the holder of the name
	Dropped Origin `json:"dropped"` // the tool or other name that was rejected
	Reason  string `json:"reason"`  // [LookAlike], or same_name if the names are equal
}

// Error returns the rejected name, the one that was kept, and the reason.
func (e *DuplicateError) Error() string {
	if e.Reason == LookAlike {
		return fmt.Sprintf("%s is kept out: it looks like %s", e.Dropped, e.Kept)
	}
	return fmt.Sprintf("%s is kept out: the name is taken by %s", e.Dropped, e.Kept)
}

// Unwrap returns ErrDuplicate.
func (e *DuplicateError) Unwrap() error { return ErrDuplicate }

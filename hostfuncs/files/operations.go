package files

import (
	"errors"
	"time"

	"github.com/caisson-run/caisson/hostfuncs/journal"
	"github.com/caisson-run/caisson/tool"
)

// The kinds of operations, as records name them.
const (
	opOpen     = "files.open"
	opStat     = "files.stat"
	opList     = "files.list"
	opReadlink = "files.readlink"
	opMkdir    = "files.mkdir"
	opRemove   = "files.remove"
	opRename   = "files.rename"
	opLink     = "files.link"
	opSymlink  = "files.symlink"
	opTimes    = "files.times"
	opTruncate = "files.truncate"
	opSync     = "files.sync"
	opRead     = "files.read"  // only where it is refused: see [File.used]
	opWrite    = "files.write" // likewise
)

// HostCalls returns the first [tool.MaxHostCalls] operations that [View.Operations]
// counts, in order, as they are now. What is read and written through a file belongs to
// the operation that opened it, in bytes and in time, also after the file was closed; so
// does the failure of the last read or write that failed. Operations with two paths show
// both, as "/project/from -> /project/to".
func (v *View) HostCalls() []tool.HostCall { return v.journal.HostCalls() }

// operation is one of them under way.
type operation struct {
	view  *View
	entry journal.Entry
}

// begin counts and lists an operation. Its target is named by the first path that is
// looked for.
func (v *View) begin(kind string) operation {
	v.current, _ = v.journal.Begin(tool.HostCall{Kind: kind, Began: time.Now()})
	return operation{v, v.current}
}

// end says how the operation ended.
func (o operation) end(err error) {
	o.view.journal.Change(o.entry, func(call *tool.HostCall) {
		call.Duration = time.Since(call.Began)
		call.Allowed = denialOf(err) == nil
		call.Status = statusOf(err)
	})
}

// name adds a path to the target of the operation that is under way.
func (v *View) name(guest string) {
	v.journal.Change(v.current, func(call *tool.HostCall) {
		if call.Target != "" {
			call.Target += " -> "
		}
		call.Target += shown(guest)
	})
}

// used adds a read or write to the operation that opened the file. One that a permission
// refused is an operation of its own: the open was allowed and stays so.
func (f *File) used(kind string, began time.Time, n int, err error) {
	v := f.place.view
	if denialOf(err) != nil {
		o := v.begin(kind)
		v.name(f.place.guest)
		o.end(err)
		return
	}
	v.journal.Change(f.listed, func(call *tool.HostCall) {
		call.Bytes += int64(n)
		call.Duration += time.Since(began)
		if status := statusOf(err); status != statusOK {
			call.Status = status
		}
	})
}

// change lists an operation on the open file itself.
func (f *File) change(kind string) operation {
	o := f.place.view.begin(kind)
	f.place.view.name(f.place.guest)
	return o
}

const (
	statusOK     = "ok"
	statusDenied = "denied"
)

// statusOf returns in a word or two how an operation ended.
func statusOf(err error) string {
	own, failed := errors.AsType[*Error](err)
	switch {
	case !failed: // or the end of a file
		return statusOK
	case own.Denial != nil:
		return statusDenied
	}
	return own.Err.Error()
}

// denialOf returns the receipt in an error of this package, or nil.
func denialOf(err error) *tool.Denial {
	if own, failed := errors.AsType[*Error](err); failed {
		return own.Denial
	}
	return nil
}

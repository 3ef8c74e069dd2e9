package files

import (
	"cmp"
	"errors"
	"time"

	"github.com/caisson-run/caisson/tool"
)

// The kinds of operations in records.
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
	opRead     = "files.read"  // only if denied: see [File.used]
	opWrite    = "files.write" // likewise
)

// begin counts and lists an operation. The first path that is located sets its target. end, which is for defer, lists
// the outcome, unless the journal leaves the operation out.
func (v *View) begin(kind string) (end func(*error)) {
	v.within = nil
	v.current, _ = v.Journal.Begin(tool.HostCall{Kind: kind, Began: time.Now()})
	entry := v.current
	return func(err *error) {
		if v.leavesOut(*err) {
			v.Journal.Undo(entry)
			return
		}
		v.Journal.Change(entry, func(call *tool.HostCall) {
			call.Duration = time.Since(call.Began)
			call.Allowed = denialOf(*err) == nil
			call.Status = statusOf(*err)
		})
	}
}

// operate runs an operation on a path, which may change the tree if changes is set, and lists it with its outcome.
func (d *Dir) operate(kind, op, name string, changes bool, do func(p place) error) (err error) {
	defer d.view.begin(kind)(&err)
	p, err := d.locate(op, name, changes)
	if err != nil {
		return err
	}
	return do(p)
}

// name adds a path to the target of the current operation, which begins in the mount from, or in none.
func (v *View) name(guest string, from *mount) {
	if v.phase != called {
		v.within = cmp.Or(v.mountOver(guest), from)
		v.advance(guest)
	}
	v.Journal.Change(v.current, func(call *tool.HostCall) {
		if call.Target != "" {
			call.Target += " -> "
		}
		call.Target += shown(guest)
	})
}

// used adds a read or write to the open of the file. A denied one is listed separately, since the open was allowed.
func (f *File) used(kind string, began time.Time, n int, err error) {
	v := f.place.view
	if denialOf(err) != nil {
		f.change(kind)(&err)
		return
	}
	v.Journal.Change(f.listed, func(call *tool.HostCall) {
		call.Bytes += int64(n)
		call.Duration += time.Since(began)
		if status := statusOf(err); status != statusOK {
			call.Status = status
		}
	})
}

func (f *File) change(kind string) (end func(*error)) {
	end = f.place.view.begin(kind)
	f.place.view.name(f.place.guest, f.place.mount)
	return end
}

const (
	statusOK     = "ok"
	statusDenied = "denied"
)

// statusOf returns the status of an operation for the record.
func statusOf(err error) string {
	own, failed := errors.AsType[*Error](err)
	switch {
	case !failed: // err is nil or io.EOF
		return statusOK
	case own.Denial != nil:
		return statusDenied
	}
	if own.limit != "" {
		return own.Err.Error() + ": " + own.limit
	}
	return own.Err.Error()
}

func denialOf(err error) *tool.Denial {
	if own, failed := errors.AsType[*Error](err); failed {
		return own.Denial
	}
	return nil
}

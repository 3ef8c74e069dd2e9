package files

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/manifests"
)

// maxElements is the maximum number of elements of an operation's path, and of a link's target that a guest chooses.
// os.Root opens a directory for each, follows eight links, and goes back to the start for each of eight "..", without
// a look at the deadline. Guests can take away what makes a tree too deep.
const maxElements = maxDepth + 16

// place is where a path leads, determined without the host. Below a mount, only os.Root resolves the path.
type place struct {
	view  *View
	op    string
	guest string           // the absolute guest path, for receipts and errors
	mount *mount           // nil for a directory above the mounts
	root  *os.Root         // resolves path
	node  *guestfiles.Node // in a tree: the directory that resolves path, then what the path leads to
	path  string           // relative to root, as the guest wrote it
	rel   string           // relative to the mount; empty if not known
	// slashed is set by trim if the path ended in slashes.
	slashed bool
}

// locate finds where a path in the directory leads. It fails if the path is invalid, leaves its
// directory lexically or is in no mount, and, if changes is set, if the place must not change.
func (d *Dir) locate(op, name string, changes bool) (place, error) {
	p, err := d.find(op, name, changes)
	if err == nil && changes {
		err = p.mayChange()
	}
	return p, err
}

// find is like locate, but does not check whether the place may change. It uses changes only for receipts.
func (d *Dir) find(op, name string, changes bool) (place, error) {
	p, err := d.follow(op, name, changes)
	if own, failed := errors.AsType[*Error](err); failed {
		d.view.name(own.Path, d.mount)
	} else {
		d.view.name(p.guest, p.mount)
	}
	return p, err
}

func (d *Dir) follow(op, name string, changes bool) (place, error) {
	v := d.view
	if v.closed || d.closed {
		return place{}, &Error{Op: op, Path: shown(d.guest), Err: errno.BadHandle}
	}
	guest := strings.TrimSuffix(d.guest, "/") + "/" + name
	if name == "." {
		guest = d.guest
	}
	if sentinel := guestfiles.CheckPath(name); sentinel != nil {
		return place{}, &Error{Op: op, Path: shown(guest), Err: sentinel}
	}
	if strings.HasPrefix(name, "/") {
		return place{}, v.deny(errno.Denied, op, name, ruleAbsolute, wanted{}) // no mount would allow it
	}
	if d.mount == nil {
		p, err := v.descend(d, op, name, changes)
		if err != nil || p.virtual() {
			return p, err
		}
		return p.found(changes)
	}
	return place{
		view: v, op: op, guest: guest, mount: d.mount,
		root: d.root, node: d.node, path: name, rel: d.below(name),
	}.found(changes)
}

// found returns a place whose root is open. If its mount's directory is missing, it is created for a change that is
// allowed. Otherwise the mount is an empty directory, like those above the mounts. In a tree, found resolves the path.
func (p place) found(changes bool) (place, error) {
	switch {
	case p.node == nil && hasManyElements(p.path):
		return place{}, p.err(errno.NameTooLong)
	case p.root != nil:
		return p, nil
	case p.node != nil:
		return p.inTree(changes)
	case p.mount.outlined:
		return place{}, p.need()
	}
	m := p.mount
	if m.root == nil {
		err := p.view.enter(m, changes && m.writable)
		if err != nil && !(errors.Is(err, os.ErrNotExist) && m.isMissing()) {
			return place{}, p.fail(err)
		}
	}
	if p.root = m.root; p.root != nil || changes {
		return p, nil
	}
	switch {
	case climb(strings.Split(p.path, "/")) >= 0:
		return place{}, p.deny(ruleLeaves)
	case !isDots(p.path):
		return place{}, p.err(errno.NotExist)
	}
	return place{view: p.view, op: p.op, guest: m.guest}, nil
}

// inTree finds where the path of a place in a tree leads. A change, which will be refused, may name anything.
func (p place) inTree(changes bool) (place, error) {
	found, err := p.node.Walk(p.path)
	p.node = found
	switch {
	case err == nil || changes:
		return p, nil
	case errors.Is(err, errno.Denied):
		return place{}, p.deny(ruleLeaves)
	}
	return place{}, p.err(err)
}

func hasManyElements(path string) bool { return strings.Count(path, "/") >= maxElements }

// isDots reports whether a path leads nowhere but to its directory.
func isDots(name string) bool {
	return !slices.ContainsFunc(strings.Split(name, "/"),
		func(element string) bool { return element != "" && element != "." })
}

// below returns a path relative to the mount, or "" if it is too long: a guest can open "a/.." again and again.
func (d *Dir) below(name string) string {
	if d.rel == "" || len(d.rel)+len(name) > guestfiles.MaxPath {
		return ""
	}
	return d.rel + "/" + name
}

func (p place) mayChange() error {
	switch {
	case p.virtual():
		return p.deny(ruleAbove)
	case !p.mount.writable:
		return p.view.readOnly(p.mount, p.op, p.guest)
	}
	return nil
}

// descend follows a path that starts above the mounts. There, ".." is resolved lexically, since there are no symbolic
// links. The path from a mount on is left to the mount's root, unless it climbs out of the mount again.
func (v *View) descend(d *Dir, op, name string, changes bool) (place, error) {
	at := strings.FieldsFunc(d.guest, func(r rune) bool { return r == '/' })
	floor := len(at)
	rest := strings.Split(name, "/")
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case "", ".":
			continue
		case "..":
			if len(at) > floor {
				at = at[:len(at)-1]
			} else if floor > 0 {
				return place{}, v.deny(errno.Denied, op, d.guest+"/"+name, ruleLeaves, wanted{})
			}
			continue // the parent of "/" is "/"
		}
		at = append(at, rest[i])
		m := v.mountAt("/" + strings.Join(at, "/"))
		if m == nil {
			continue
		}
		climbs := climb(rest[i+1:])
		if climbs < 0 {
			return v.inside(m, op, rest[i+1:]), nil
		}
		i += 1 + climbs
		at = at[:len(at)-1]
	}
	guest := "/" + strings.Join(at, "/")
	if !v.isVirtual(guest) {
		return place{}, v.deny(errno.Denied, op, guest, ruleNoMount, v.wantedFor(op, guest, changes))
	}
	return place{view: v, op: op, guest: guest}, nil
}

// inside returns the place for the rest of a path in a mount. It keeps trailing slashes, which have a meaning.
func (v *View) inside(m *mount, op string, rest []string) place {
	name := strings.TrimLeft(strings.Join(rest, "/"), "/")
	if name == "" {
		name = "."
	}
	p := place{
		view: v, op: op, guest: path.Join(m.guest, name), mount: m,
		root: m.root, path: name, rel: name,
	}
	if m.Tree != nil {
		p.node = m.Tree.Root()
	}
	return p
}

// climb returns the index of the first ".." that leaves the starting directory, or -1.
func climb(elements []string) int {
	depth := 0
	return slices.IndexFunc(elements, func(element string) bool {
		switch element {
		case "", ".":
		case "..":
			depth--
		default:
			depth++
		}
		return depth < 0
	})
}

func (p place) virtual() bool { return p.mount == nil }

func (p place) err(sentinel error) error {
	return &Error{Op: p.op, Path: shown(p.guest), Err: sentinel}
}

// fail converts an error of the host.
func (p place) fail(err error) error { return p.view.fail(p.op, p.guest, err) }

// deny denies the operation, with a receipt that suggests nothing.
func (p place) deny(rule string) error {
	return p.view.deny(errno.Denied, p.op, p.guest, rule, wanted{})
}

// enter waits for the exclusive right to change the mount's tree. If it succeeds, the caller must call the tracker's
// leave.
func (p place) enter() error {
	err := p.mount.tracker.enter(p.view.ctx, p.mount.root)
	if errors.Is(err, errNoLock) {
		p.view.warn("the quota of a directory is counted without other processes", p.op, p.guest, slog.Any("error", err))
		return nil
	}
	return p.fail(err)
}

// change runs an operation that changes the mount's tree, which nothing else of this store changes or opens meanwhile.
func (p place) change(operation func() error) error {
	if err := p.enter(); err != nil {
		return err
	}
	t := p.mount.tracker
	defer t.leave()
	if err := t.measure(p.view.ctx, p.mount.root, p.mount.Quota); err != nil {
		return p.fail(err)
	}
	return p.fail(operation())
}

// room checks that the quota and the call's limit allow the directory to grow. The caller must hold
// the tracker's turn. A change by which it does not grow needs no room, even in a directory that is over its quota.
func (p place) room(bytes manifests.Bytes, files int) error {
	if bytes == 0 && files == 0 {
		return nil
	}
	if bytes > p.view.limits.AddedBytes-p.view.added {
		return p.full(fmt.Sprintf("the call may add %s", p.view.limits.AddedBytes))
	}
	if err := p.mount.tracker.room(p.view.ctx, p.mount.root, p.mount.Quota, bytes, files); err != nil {
		if err != errno.NoSpace {
			return p.fail(err)
		}
		m := p.mount
		reached := fmt.Sprintf("the quota of %s and %d files", m.Quota.Bytes, m.Quota.Files)
		if m.Grant != "" {
			reached += ", " + m.Grant
		}
		return p.full(reached)
	}
	return nil
}

// full returns an [errno.NoSpace], and tells the operator which limit is reached.
func (p place) full(limit string) error {
	p.view.warn("no space left", p.op, p.guest, slog.String("limit", limit))
	return &Error{Op: p.op, Path: shown(p.guest), Err: errno.NoSpace, limit: limit}
}

func (p place) grew(bytes manifests.Bytes, files int) {
	p.mount.tracker.add(bytes, files)
	p.view.added += bytes
}

func (p place) removed(info os.FileInfo) {
	freed, gone := p.mount.tracker.removed(info)
	p.freed(freed, gone, info)
}

// freed accounts for what the call has freed of a file.
func (p place) freed(bytes manifests.Bytes, gone bool, info os.FileInfo) {
	p.view.added = max(0, p.view.added-bytes)
	if gone {
		p.view.inodes.remove(info) // the system may reuse the number
	}
}

package files

import (
	"errors"
	"log/slog"
	"math"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
)

// maxElement is the longest path element in bytes, as on common file systems.
const maxElement = 255

// maxPath is the longest path of one operation in bytes, as PATH_MAX on Linux.
const maxPath = 4096

// place is where a path leads, found without touching the host: below a mount, or a
// directory above the mounts. What is below a mount is left to os.Root to resolve, so
// that nothing is decided twice.
type place struct {
	view  *View
	op    string
	guest string   // the absolute guest path, for receipts and errors
	mount *mount   // nil for a directory above the mounts
	root  *os.Root // resolves path
	path  string   // relative to root; as the guest wrote it
	rel   string   // relative to the mount; empty where that is not known
	// slashed is set by trim where the path ended in slashes.
	slashed bool
}

// locate finds where a path of the directory leads. It fails
// when the path is not one, leaves its directory on paper, or fits no mount; where the
// operation changes the tree, also when nothing may change there.
func (d *Dir) locate(op, name string, changes bool) (place, error) {
	p, err := d.find(op, name, changes)
	if err == nil && changes {
		err = p.mayChange()
	}
	return p, err
}

// find is locate without the decision. What the operation wants is for the receipt.
func (d *Dir) find(op, name string, changes bool) (place, error) {
	p, err := d.follow(op, name, changes)
	if own, failed := errors.AsType[*Error](err); failed {
		d.view.name(own.Path)
	} else {
		d.view.name(p.guest)
	}
	return p, err
}

func (d *Dir) follow(op, name string, changes bool) (place, error) {
	v := d.view
	if v.closed || d.closed {
		return place{}, &Error{Op: op, Path: shown(d.guest), Err: ErrBadHandle}
	}
	guest := strings.TrimSuffix(d.guest, "/") + "/" + name
	if name == "." {
		guest = d.guest
	}
	if sentinel := checkPath(name); sentinel != nil {
		return place{}, &Error{Op: op, Path: shown(guest), Err: sentinel}
	}
	if strings.HasPrefix(name, "/") {
		return place{}, v.deny(ErrDenied, op, name, ruleAbsolute, wanted{}) // no mount helps
	}
	if d.mount == nil {
		return v.descend(d, op, name, changes)
	}
	return place{
		view: v, op: op, guest: guest, mount: d.mount,
		root: d.root, path: name, rel: d.below(name),
	}, nil
}

// below is a path of the directory relative to the mount, or empty where it is too
// long to follow: a guest can open "a/.." in itself without end.
func (d *Dir) below(name string) string {
	if d.rel == "" || len(d.rel)+len(name) > maxPath {
		return ""
	}
	return d.rel + "/" + name
}

// mayChange decides whether the tree may change at the place.
func (p place) mayChange() error {
	switch {
	case p.virtual():
		return p.deny(ruleAbove)
	case !p.mount.writable:
		return p.view.readOnly(p.mount, p.op, p.guest)
	}
	return nil
}

// checkPath returns what is wrong with a path, whatever directory it starts at.
func checkPath(name string) error {
	switch {
	case name == "":
		return ErrNotExist // POSIX.1-2024, 4.16
	case strings.ContainsRune(name, 0) || !utf8.ValidString(name):
		return ErrInvalid
	case len(name) > maxPath:
		return ErrNameTooLong
	}
	for element := range strings.SplitSeq(name, "/") {
		if len(element) > maxElement {
			return ErrNameTooLong
		}
		if !permission.IsElement(element) {
			return ErrInvalid
		}
	}
	return nil
}

// descend follows a path that starts above the mounts. There ".." is resolved on
// paper, since nothing there can be a symbolic link. From the mount on, the rest of
// the path is the mount's, unless it climbs out of it again.
func (v *View) descend(d *Dir, op, name string, changes bool) (place, error) {
	at := elements(d.guest)
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
				return place{}, v.deny(ErrDenied, op, d.guest+"/"+name, ruleLeaves, wanted{})
			}
			continue // above "/" is "/"
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
		return place{}, v.deny(ErrDenied, op, guest, ruleNoMount, v.wantedFor(op, guest, changes))
	}
	return place{view: v, op: op, guest: guest}, nil
}

// inside is the place that the rest of a path leads to from a mount on. Trailing
// slashes stay, since they mean something.
func (v *View) inside(m *mount, op string, rest []string) place {
	name := strings.TrimLeft(strings.Join(rest, "/"), "/")
	if name == "" {
		name = "."
	}
	return place{
		view: v, op: op, guest: path.Join(m.guest, name), mount: m,
		root: m.root, path: name, rel: name,
	}
}

// climb returns the index of the first ".." that leaves the directory that the
// elements start in, or -1.
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

// elements splits a clean absolute path.
func elements(guest string) []string {
	return strings.FieldsFunc(guest, func(r rune) bool { return r == '/' })
}

func (p place) virtual() bool { return p.mount == nil }

// err returns the place's error with a sentinel of this package.
func (p place) err(sentinel error) error {
	return &Error{Op: p.op, Path: shown(p.guest), Err: sentinel}
}

// fail turns an error of the host into the place's.
func (p place) fail(err error) error { return p.view.fail(p.op, p.guest, err) }

// deny refuses the operation, with a receipt that nothing would allow it.
func (p place) deny(rule string) error {
	return p.view.deny(ErrDenied, p.op, p.guest, rule, wanted{})
}

// change runs an operation that changes the mount's tree, while no other call
// changes it or opens anything in it.
func (p place) change(operation func() error) error {
	t := p.mount.tracker
	if err := t.take(p.view.ctx); err != nil {
		return p.fail(err)
	}
	defer t.give()
	if err := t.measure(p.view.ctx, p.mount.root, p.mount.quota); err != nil {
		return p.fail(err)
	}
	return p.fail(operation())
}

// room checks that the directory may grow, and by this call. It has the tracker's turn.
func (p place) room(bytes manifests.Bytes, files int) error {
	if bytes > p.view.limits.AddedBytes-p.view.added {
		return p.err(ErrNoSpace)
	}
	if err := p.mount.tracker.room(p.view.ctx, p.mount.root, p.mount.quota, bytes, files); err != nil {
		if err == ErrNoSpace {
			return p.err(ErrNoSpace)
		}
		return p.fail(err)
	}
	return nil
}

// grew accounts for what was added.
func (p place) grew(bytes manifests.Bytes, files int) {
	p.mount.tracker.add(bytes, files)
	p.view.added += bytes
}

// shrank accounts for bytes that were freed.
func (p place) shrank(bytes manifests.Bytes) {
	p.mount.tracker.subtract(bytes, 0)
	p.view.added = max(0, p.view.added-bytes)
}

// removed accounts for a name that was taken away.
func (p place) removed(info os.FileInfo) {
	freed, gone := p.mount.tracker.removed(info)
	p.view.added = max(0, p.view.added-freed)
	if gone {
		// The system may give the number to another file.
		p.view.inodes.remove(info)
	}
}

// The defaults that zero values stand for.
const (
	DefaultQuotaBytes = 256 << 20
	DefaultQuotaFiles = 10_000
	DefaultAddedBytes = 64 << 20
	DefaultOpenFiles  = 64
)

// Mount is one effective file permission: a guest path that shows a host directory.
type Mount struct {
	Guest  permission.GuestPath    // where the guest sees it, such as /project; "/" is allowed
	Host   permission.HostTemplate // which host directory
	Access manifests.Access        // effective: what was requested and granted
	Quota  Quota

	// Requested and Granted say what the manifest asks for and what the operator
	// grants; empty is "not known". Receipts tell of them, and a directory that a
	// context value names is made when the grant is for writing.
	Requested, Granted manifests.Access
	// Cut says why Access is less than both, such as "the profile strict allows no writing".
	// It is empty where it is not.
	Cut string
}

// Quota bounds a host directory with everything in it, whoever wrote it. A zero field
// is the default: [DefaultQuotaBytes], [DefaultQuotaFiles].
//
// To hold it, the directory is walked before a call's first change, unless other calls
// hold it too: 10,000 files take some 20 milliseconds. One that is beyond its quota is
// walked up to twice that.
type Quota struct {
	Bytes manifests.Bytes // logical sizes of files, so that holes count, and of links
	Files int             // entries of any kind
}

func (q Quota) doubled() Quota {
	return Quota{Bytes: q.Bytes + min(q.Bytes, math.MaxInt64-q.Bytes), Files: q.Files + min(q.Files, math.MaxInt-1-q.Files)}
}

// Limits bounds one call. A zero number is the default: [DefaultOpenFiles],
// [DefaultAddedBytes].
type Limits struct {
	// Tool is the name of the tool that is called. Receipts say with it which grant would
	// help, so there is no such suggestion where it is empty. It bounds nothing.
	Tool       string
	OpenFiles  int             // open files and directories, besides the preopened ones
	AddedBytes manifests.Bytes // by how much one call may grow its directories, all together
}

// Options configures a [Store].
type Options struct {
	// Logger receives the host's errors behind [ErrIO]: they may hold host paths,
	// and never reach a guest. Nil discards them.
	Logger *slog.Logger
}

package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path"
	"sync"

	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// The defaults for zero values.
const (
	defaultQuotaBytes = 256 << 20
	defaultQuotaFiles = 10_000
	defaultAddedBytes = 64 << 20
	defaultOpenFiles  = 64
)

// Mount is one effective file permission, a host directory mounted at a guest path, or a tree of the tool's own files.
type Mount struct {
	Guest permission.GuestPath    // where the guest sees it, such as /project; "/" is allowed
	Host  permission.HostTemplate // the host directory
	// Tree is mounted instead of a host directory. Every other field but Guest and Program must then be zero.
	Tree *guestfiles.Tree
	// Program is the directory in Tree where an interpreter finds the program that it is given, such as "tool". The
	// journal omits the interpreter's lookups outside of the granted directories until it first looks in Program, and then
	// its reads in trees until [View.MakeNotes] is called. Empty means that the journal has every operation.
	Program string
	Access  manifests.Access // effective: both requested and granted
	// Quota limits the whole content of a host directory, no matter who wrote it: the logical sizes of files, including
	// holes, and of links, and the entries of any kind. A zero field means the default: 256 MiB, 10,000 files.
	//
	// To enforce it, the directory is walked before a call's first change, unless other calls of the store have mounted
	// it too, and after another store or process has changed it, or before each change if it has the sticky bit. Walking
	// 10,000 files takes about 20 milliseconds. The walk of a directory over its quota stops at twice the quota.
	Quota manifests.Quota
	// Grant is where the operator wrote the quota, for display, such as "caisson.yaml:14". It may be empty.
	Grant string

	// Requested and Granted are the access that the manifest requests and the operator grants, or empty if not known.
	// Receipts mention them. A missing directory named by a context value is created if the grant is for writing.
	Requested, Granted manifests.Access
	// Cut is the reason why Access is less than both, such as "the profile strict allows no writing", or empty.
	Cut string
}

func doubled(q manifests.Quota) manifests.Quota {
	return manifests.Quota{
		Bytes: q.Bytes + min(q.Bytes, math.MaxInt64-q.Bytes), Files: q.Files + min(q.Files, math.MaxInt-1-q.Files),
	}
}

// Limits are the limits of one call. A zero number means the default: 64 open files, 64 MiB added.
type Limits struct {
	// Tool is the name of the called tool, for the grants that receipts suggest. It is not a limit.
	Tool       string
	OpenFiles  int             // open files and directories, excluding preopened ones
	AddedBytes manifests.Bytes // total growth of the call's directories
}

// Store tracks how full directories are, for all calls of a runtime. It is safe for concurrent use.
type Store struct {
	logger *slog.Logger
	syncs  chan struct{} // one element for each sync in progress

	mu       sync.Mutex
	trackers fileMap[*tracker]
}

// NewStore returns an empty store. The logger receives the host's errors that guests see as input/output errors. They
// may contain host paths and never reach a guest. If it is nil, they are discarded.
func NewStore(logger *slog.Logger) *Store {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Store{logger: logger, syncs: make(chan struct{}, maxSyncs)}
}

// Open returns a call's view of the mounts of an outline. The values replace the placeholders in host directories. A
// directory named by a value is opened inside its parent, so a value cannot lead elsewhere, and it must be a directory,
// not a symbolic link to one. If the grant is for writing, a directory that is missing from the first placeholder on is
// shown empty, since a new project is not an error, and the first operation that may write there creates it. For any
// other missing directory, Open fails with [errno.NotExist] and the guest path.
//
// If a value is missing or unsuitable, Open fails with [errno.Denied] and a receipt in [Error]. The context is also
// used for the view's operations until [View.SetContext] replaces it. The caller must close the view.
//
// On a host file system that ignores case, values that differ only in case name the same directory.
func (s *Store) Open(ctx context.Context, outline *Outline, values map[string]string) (*View, error) {
	v := &View{ctx: ctx, store: s, limits: outline.limits}
	for _, m := range outline.mounts {
		if err := ctx.Err(); err != nil {
			return nil, errors.Join(fmt.Errorf("open mount %s: %w", shown(m.Guest.String()), err), v.Close())
		}
		if err := v.mount(m, values); err != nil {
			err = v.fail("open mount", m.Guest.String(), err)
			// The open mounts were not used, so an error in closing them does not matter.
			_ = v.Close()
			return nil, err
		}
	}
	v.preopen()
	return v, nil
}

func (m *Mount) resolve() error {
	invalid := func(problem string) error {
		return m.err(fmt.Errorf("%w: %s", errno.Invalid, problem))
	}
	switch {
	case m.Guest == permission.GuestPath{}:
		return invalid("it has no guest path")
	case m.Tree != nil && (m.Host.Base() != "" || m.Quota != manifests.Quota{} ||
		m.Access != "" || m.Requested != "" || m.Granted != "" || m.Cut != "" || m.Grant != ""):
		return invalid("a tree has no host directory, access or quota")
	case m.Tree != nil:
		return nil
	case m.Program != "":
		return invalid("only a tree has a program")
	case m.Access != manifests.AccessRead && m.Access != manifests.AccessReadWrite:
		return invalid("the access must be read or read-write")
	case m.Quota.Bytes < 0 || m.Quota.Files < 0:
		return invalid("the quota must not be negative")
	case m.Host.Base() == "":
		return invalid("it has no host directory")
	}
	m.Quota.Bytes, m.Quota.Files = cmp.Or(m.Quota.Bytes, defaultQuotaBytes), cmp.Or(m.Quota.Files, defaultQuotaFiles)
	return nil
}

func (m *Mount) err(err error) *Error {
	return &Error{Op: "open mount", Path: shown(m.Guest.String()), Err: err}
}

// overlap rejects nested mounts, since the mount of a path would depend on how the path is written.
func overlap(mounts []Mount) error {
	for i, a := range mounts {
		for _, b := range mounts[i+1:] {
			if _, both := a.Guest.Intersect(b.Guest); both {
				return b.err(fmt.Errorf("%w: it overlaps the mount at %s", errno.Invalid, shown(a.Guest.String())))
			}
		}
	}
	return nil
}

func (v *View) mount(m Mount, values map[string]string) error {
	opened := v.reserved(m)
	if m.Tree != nil {
		v.mounts = append(v.mounts, opened)
		return nil
	}
	elements, err := m.Host.Elements(values)
	if wrong, ok := errors.AsType[*permission.ValueError](err); ok {
		return m.contextDenial(values, wrong)
	}
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(m.Host.Base() + string(os.PathSeparator) + ".")
	if err != nil {
		return err
	}
	if v.escape == nil {
		v.escape = escapeOf(root)
		if errors.Is(v.escape, errno.NotSupported) {
			_ = root.Close()
			return m.err(errno.NotSupported)
		}
	}
	opened.parent, opened.path = root, elements
	err = v.enter(opened, false)
	created := m.Access == manifests.AccessReadWrite || m.Granted == manifests.AccessReadWrite
	if errors.Is(err, os.ErrNotExist) && created && opened.isMissing() {
		err = nil
	}
	if err != nil {
		_ = opened.parent.Close()
		return err
	}
	v.mounts = append(v.mounts, opened)
	return nil
}

// reserved returns the mount without its directory, and reserves its inode numbers.
func (v *View) reserved(m Mount) *mount {
	reserved := &mount{
		Mount: m, guest: m.Guest.String(), inode: v.lastInode + 1, writable: m.Access == manifests.AccessReadWrite,
	}
	if m.Program != "" {
		reserved.program = path.Join(reserved.guest, m.Program)
	}
	v.lastInode += reserved.names()
	return reserved
}

// names returns how many inode numbers are reserved for the mount.
func (m *mount) names() uint64 {
	if m.Tree != nil {
		return m.Tree.Names()
	}
	return 1
}

// enter opens the directory of a mount from its parent on. If create is set, it creates missing directories.
func (v *View) enter(m *mount, create bool) error {
	for len(m.path) > 0 {
		next, err := v.descendTo(m, m.path[0], create)
		if err != nil {
			return err
		}
		_ = m.parent.Close()
		m.parent, m.path = next, m.path[1:]
	}
	info, err := m.parent.Stat(".")
	if err != nil {
		return err
	}
	m.root, m.parent, m.tracker = m.parent, nil, v.store.acquire(info)
	if _, known := v.inodes.get(info); !known {
		v.inodes.put(info, m.inode)
	}
	return nil
}

// descendTo opens a directory inside a mount's parent. It rejects symbolic links: with a link in the
// place of one project's directory, the project would see another's files.
func (v *View) descendTo(m *mount, name string, create bool) (*os.Root, error) {
	info, err := m.parent.Lstat(name)
	if errors.Is(err, os.ErrNotExist) && create {
		if err := m.parent.Mkdir(name, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		info, err = m.parent.Lstat(name)
	}
	if err != nil {
		return nil, err
	}
	if info.Mode()&os.ModeSymlink != 0 {
		return nil, v.deny(errno.Denied, "open mount", m.guest, "the directory that a context value names is a symbolic link",
			wanted{})
	}
	if !info.IsDir() {
		return nil, m.err(errno.NotDir)
	}
	next, err := openDirectory(m.parent, name)
	if err != nil {
		return nil, err
	}
	if now, err := next.Stat("."); err != nil || !os.SameFile(now, info) {
		_ = next.Close()
		return nil, m.err(errno.Busy)
	}
	return next, nil
}

// openDirectory opens a directory inside a root. The added "/." makes the system fail for anything
// but a directory. Without it, opening a pipe would block.
func openDirectory(root *os.Root, name string) (*os.Root, error) { return root.OpenRoot(name + "/.") }

func (m *Mount) contextDenial(values map[string]string, wrong *permission.ValueError) error {
	denial := tool.Denial{
		Permission: "context", Value: wrong.Key,
		Rule: wrong.Problem + ", which the directory " + shown(m.Guest.String()) + " needs",
	}
	// Omit the value: receipts may reach the model, which must not see it.
	if _, given := values[wrong.Key]; !given {
		denial.Allow = tool.Allow{
			Manifest: manifests.ContextRule(wrong.Key),
			Grant:    manifests.ContextSource{Name: wrong.Key, From: manifests.FromFixed}.Rule(),
		}
	}
	failed := m.err(errno.Denied)
	failed.Denial = &denial
	return failed
}

// acquire returns the tracker of a directory, which calls that have mounted the same directory share.
func (s *Store) acquire(directory os.FileInfo) *tracker {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, found := s.trackers.get(directory)
	if !found {
		t = &tracker{directory: directory, turn: make(chan struct{}, 1)}
		s.trackers.put(directory, t)
	}
	t.holders++
	return t
}

// release drops a tracker with its last holder, so that the next holder measures again.
func (s *Store) release(t *tracker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.holders--
	if t.holders == 0 {
		t.lock.close()
		s.trackers.remove(t.directory)
	}
}

package guestfiles

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/tool"
)

// The bounds of a [Tree]. It stays in memory for as long as a tool has it.
const (
	MaxTreeBytes = 128 << 20 // contents of all files
	MaxTreeNames = 20_000    // files and directories
	maxTreeDepth = 64
)

// ErrTree means that files cannot be made into a [Tree].
var ErrTree = errors.New("the files cannot be kept in memory")

func shown(name string) string { return tool.Shown(name, 512) }

const tooLong = "with %s they are longer than %d bytes; leave out what the tool does not need"

func unfit(format string, values ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrTree}, values...)...)
}

// Tree is files that are the same in all calls: a copy in memory, which nothing can change. All calls share it, and
// tools may. It has only regular files and directories, whose times are the Unix epoch. It is safe for concurrent use.
type Tree struct {
	nodes  []*Node // by their numbers; the root comes first
	digest [sha256.Size]byte
}

// Node is a file or directory of a [Tree].
type Node struct {
	name     string
	number   uint64 // in the tree, counted from 0
	isDir    bool
	content  []byte
	shared   *shared // the content, once the tree is held
	children []*Node // sorted by name
}

// NewTree copies all files below the root of fsys. It fails if there is anything but regular files and directories, a
// name that guests could not use, or more than the bounds allow. The error names the file.
func NewTree(fsys fs.FS) (*Tree, error) {
	t := &Tree{}
	b := treeBuilder{fsys: fsys, tree: t, sum: sha256.New()}
	if _, err := b.directory(".", ".", 0); err != nil {
		return nil, err
	}
	b.sum.Sum(t.digest[:0])
	return t, nil
}

// Root returns the directory that holds all others.
func (t *Tree) Root() *Node { return t.nodes[0] }

// Names returns how many files and directories there are, with the root.
func (t *Tree) Names() uint64 { return uint64(len(t.nodes)) }

// Digest identifies the names and contents of all files: trees that guests can tell apart have different digests.
func (t *Tree) Digest() [sha256.Size]byte { return t.digest }

// treeBuilder copies files. It reads in the order of names, so that the digest does not depend on anything else.
type treeBuilder struct {
	fsys  fs.FS
	tree  *Tree
	bytes int64
	sum   hash.Hash
}

func (b *treeBuilder) add(name string, isDir bool) (*Node, error) {
	if len(b.tree.nodes) == MaxTreeNames {
		return nil, unfit("there are more than %d of them; leave out what the tool does not need", MaxTreeNames)
	}
	n := &Node{name: name, number: b.tree.Names(), isDir: isDir}
	b.tree.nodes = append(b.tree.nodes, n)
	return n, nil
}

// write adds a node to the digest. Lengths make every text unambiguous.
func (b *treeBuilder) write(kind byte, name string, content []byte) {
	head := binary.LittleEndian.AppendUint64([]byte{kind}, uint64(len(name)))
	head = binary.LittleEndian.AppendUint64(append(head, name...), uint64(len(content)))
	b.sum.Write(head)
	b.sum.Write(content)
}

func (b *treeBuilder) directory(name, at string, depth int) (*Node, error) {
	if depth > maxTreeDepth {
		return nil, unfit("%s is deeper than %d directories", shown(at), maxTreeDepth)
	}
	dir, err := b.add(name, true)
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(b.fsys, at)
	if err != nil {
		return nil, unfit("%w", err)
	}
	if len(entries) > MaxEntries {
		return nil, unfit("%s holds more than %d names, which is as many as a guest can list", shown(at), MaxEntries)
	}
	b.write('d', at, binary.LittleEndian.AppendUint64(nil, uint64(len(entries))))
	// Not every file system sorts, or sorts by byte.
	slices.SortFunc(entries, func(x, y fs.DirEntry) int { return strings.Compare(x.Name(), y.Name()) })
	for i, entry := range entries {
		if i > 0 && entries[i-1].Name() == entry.Name() {
			return nil, unfit("%s has two files of the name %q", shown(at), entry.Name())
		}
		child, err := b.entry(entry, path.Join(at, entry.Name()), depth)
		if err != nil {
			return nil, err
		}
		dir.children = append(dir.children, child)
	}
	return dir, nil
}

func (b *treeBuilder) entry(entry fs.DirEntry, at string, depth int) (*Node, error) {
	name := entry.Name()
	if err := CheckPath(name); err != nil || strings.Contains(name, "/") || name == "." || name == ".." {
		return nil, unfit("the name of %s cannot be used in a guest's path", shown(at))
	}
	switch entry.Type() {
	case fs.ModeDir:
		return b.directory(name, at, depth+1)
	case 0:
		return b.file(name, at)
	}
	return nil, unfit("%s is neither a regular file nor a directory", shown(at))
}

func (b *treeBuilder) file(name, at string) (*Node, error) {
	n, err := b.add(name, false)
	if err != nil {
		return nil, err
	}
	file, err := b.fsys.Open(at)
	if err != nil {
		return nil, unfit("%w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, unfit("%w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, unfit("%s is not a regular file", shown(at))
	}
	left := MaxTreeBytes - b.bytes
	if info.Size() > left {
		return nil, unfit(tooLong, shown(at), MaxTreeBytes)
	}
	var content bytes.Buffer
	content.Grow(int(max(0, info.Size())) + bytes.MinRead)
	// The size may have changed since, and not every file system tells it.
	if _, err := content.ReadFrom(io.LimitReader(file, left+1)); err != nil {
		return nil, unfit("%w", err)
	}
	if int64(content.Len()) > left {
		return nil, unfit(tooLong, shown(at), MaxTreeBytes)
	}
	n.content = slices.Clip(content.Bytes())
	b.bytes += int64(len(n.content))
	b.write('f', at, n.content)
	return n, nil
}

func (n *Node) child(name string) *Node {
	at, found := slices.BinarySearchFunc(n.children, name,
		func(child *Node, name string) int { return strings.Compare(child.name, name) })
	if !found {
		return nil
	}
	return n.children[at]
}

// Walk follows a path that guests wrote, which [CheckPath] must have accepted. It never leaves the directory that it
// starts in. The error is an [errno.Errno]; [errno.Denied] means that the path leaves.
func (n *Node) Walk(name string) (*Node, error) {
	way := []*Node{n}
	for element := range strings.SplitSeq(name, "/") {
		at := way[len(way)-1]
		switch {
		case !at.isDir:
			return nil, errno.NotDir
		case element == "" || element == ".":
			continue
		case element == "..":
			if len(way) == 1 {
				return nil, errno.Denied
			}
			way = way[:len(way)-1]
			continue
		}
		child := at.child(element)
		if child == nil {
			return nil, errno.NotExist
		}
		way = append(way, child)
	}
	return way[len(way)-1], nil
}

func (n *Node) IsDir() bool { return n.isDir }

// Info describes the node. The root of its tree has the inode number first, and the others have those that follow.
func (n *Node) Info(first uint64) Info {
	epoch := time.Unix(0, 0)
	return Info{Kind: n.kind(), Size: int64(len(n.content)), Inode: first + n.number, Links: 1, Accessed: epoch,
		Modified: epoch, Changed: epoch}
}

func (n *Node) kind() fs.FileMode {
	if n.isDir {
		return fs.ModeDir
	}
	return 0
}

// Entries lists a directory. Inode numbers are as in [Node.Info].
func (n *Node) Entries(first uint64) []Entry {
	entries := make([]Entry, 0, len(n.children))
	for _, child := range n.children {
		entries = append(entries, Entry{child.name, child.kind(), first + child.number})
	}
	return entries
}

// ReadAt reads like [io.ReaderAt]. The offset is not negative.
func (n *Node) ReadAt(p []byte, offset int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return bytes.NewReader(n.content).ReadAt(p, offset)
}

package guestfiles

import (
	"crypto/sha256"
	"sync"
)

// nodeBytes is the size of a node besides its content, with its name and its place in [Contents].
const nodeBytes = 512

// Contents bounds the memory that several trees hold together, and keeps equal files of them once. It is safe for
// concurrent use.
type Contents struct {
	limit int64

	mu    sync.Mutex
	bytes int64
	held  map[[sha256.Size]byte]*shared
}

type shared struct {
	content []byte
	digest  [sha256.Size]byte
	files   int // which have it
}

// NewContents returns an empty set of contents of at most limit bytes.
func NewContents(limit int64) *Contents {
	return &Contents{limit: limit, held: map[[sha256.Size]byte]*shared{}}
}

// Hold makes a tree, which nothing may use yet, share the contents of its files with the trees that are held. It fails,
// and does not hold the tree, if they would have more bytes together than the limit. A tree may be held once.
func (c *Contents) Hold(t *Tree) error {
	digests := make([][sha256.Size]byte, len(t.nodes))
	for i, n := range t.nodes {
		digests[i] = sha256.Sum256(n.content) // before the lock, since it takes time
	}
	c.mu.Lock()
	c.bytes += nodeBytes * int64(len(t.nodes))
	for i, n := range t.nodes {
		digest := digests[i]
		if c.held[digest] == nil {
			c.held[digest] = &shared{content: n.content, digest: digest}
			c.bytes += int64(len(n.content))
		}
		n.shared = c.held[digest]
		n.shared.files++
		n.content = n.shared.content
	}
	tooMany := c.bytes > c.limit
	c.mu.Unlock()
	if tooMany {
		c.Release(t)
		return unfit("the script tools that are loaded would have more than %d bytes together, with equal files "+
			"counted once; leave out what they do not need", c.limit)
	}
	return nil
}

// Release undoes [Contents.Hold]. The tree can still be used.
func (c *Contents) Release(t *Tree) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes -= nodeBytes * int64(len(t.nodes))
	for _, n := range t.nodes {
		if n.shared.files--; n.shared.files == 0 {
			delete(c.held, n.shared.digest)
			c.bytes -= int64(len(n.content))
		}
	}
}

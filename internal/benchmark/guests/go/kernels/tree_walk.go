package kernels

const treeWalks = 16

type treeNode struct {
	key         uint32
	left, right *treeNode
}

// TreeWalk inserts size random keys into a search tree, and walks it in order several times.
func TreeWalk(size int32) uint64 {
	source := random(14)
	var root *treeNode
	for range size {
		key, at := source.next(), &root
		for *at != nil {
			if key < (*at).key {
				at = &(*at).left
			} else {
				at = &(*at).right
			}
		}
		*at = &treeNode{key: key}
	}
	checksum := uint64(checksumSeed)
	for range treeWalks {
		height := root.walk(&checksum)
		checksum = mix(checksum, uint64(height))
	}
	return checksum
}

// walk folds the keys into a checksum, and returns the height.
func (n *treeNode) walk(checksum *uint64) uint32 {
	if n == nil {
		return 0
	}
	left := n.left.walk(checksum)
	*checksum = mix(*checksum, uint64(n.key))
	return 1 + max(left, n.right.walk(checksum))
}

package kernels

import "strconv"

type slot struct {
	key   string // empty: free
	hash  uint64
	count uint64
}

// table counts strings: open addressing with linear probing. Its length is a power of two.
type table struct {
	slots []slot
	used  int
}

// HashMap counts size random names, then looks up twice as many.
func HashMap(size int32) uint64 {
	n := uint32(max(size, 0))
	source := random(7)
	counts := table{slots: make([]slot, 16)}
	var name []byte
	for range n {
		name = appendName(name[:0], source.next()%n)
		counts.add(name)
	}
	checksum := uint64(checksumSeed)
	for range 2 * n {
		name = appendName(name[:0], source.next()%n)
		checksum = mix(checksum, counts.count(name))
	}
	return mix(checksum, uint64(counts.used))
}

func appendName(name []byte, number uint32) []byte {
	return strconv.AppendUint(append(name, "name/"...), uint64(number), 10)
}

func hashOf(key []byte) uint64 {
	hash := uint64(checksumSeed)
	for _, b := range key {
		hash = mix(hash, uint64(b))
	}
	return hash ^ hash>>32
}

// find returns the key's slot, or the free one where it belongs.
func (t *table) find(key []byte, hash uint64) *slot {
	mask := uint64(len(t.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.key == "" || s.hash == hash && s.key == string(key) {
			return s
		}
	}
}

func (t *table) count(key []byte) uint64 { return t.find(key, hashOf(key)).count }

func (t *table) add(key []byte) {
	if 4*(t.used+1) > 3*len(t.slots) {
		t.grow()
	}
	hash := hashOf(key)
	s := t.find(key, hash)
	if s.key == "" {
		s.key, s.hash = string(key), hash
		t.used++
	}
	s.count++
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]slot, 2*len(old))
	mask := uint64(len(t.slots) - 1)
	for _, s := range old {
		if s.key == "" {
			continue
		}
		i := s.hash & mask
		for t.slots[i].key != "" {
			i = (i + 1) & mask
		}
		t.slots[i] = s
	}
}

// Package swept has a map whose stale entries go as it grows.
package swept

// least is how many entries are not worth looking for stale ones.
const least = 1024

// Map takes memory in proportion to twice the entries that are not stale. The zero value is empty. It
// is not safe for concurrent use.
type Map[K comparable, V any] struct {
	entries map[K]V
	sweepAt int
}

// Get returns the value of a key, stale or not.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	value, ok = m.entries[key]
	return value, ok
}

// Len returns how many entries there are, with those that are stale and have not gone yet.
func (m *Map[K, V]) Len() int { return len(m.entries) }

// Delete forgets a key.
func (m *Map[K, V]) Delete(key K) { delete(m.entries, key) }

// Put sets the value of a key. Once there are twice as many entries as the last sweep left, it first
// forgets those that are stale.
func (m *Map[K, V]) Put(key K, value V, stale func(V) bool) {
	if m.entries == nil {
		m.entries, m.sweepAt = map[K]V{}, least
	}
	if len(m.entries) >= m.sweepAt {
		fresh := map[K]V{} // a map never gives back the room that it once had
		for k, v := range m.entries {
			if !stale(v) {
				fresh[k] = v
			}
		}
		m.entries, m.sweepAt = fresh, max(least, 2*len(fresh))
	}
	m.entries[key] = value
}

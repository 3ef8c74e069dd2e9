// Package swept has a map that removes stale entries as it grows.
package swept

// least is the number of entries below which stale ones are not looked for.
const least = 1024

// Map holds at most about twice as many entries as are not stale. The zero value is empty. It is not safe for
// concurrent use.
type Map[K comparable, V any] struct {
	// Most bounds the entries, if it is not zero: a full map forgets stale entries and, if too few are, others, until
	// it is half full.
	Most int

	entries map[K]V
	sweepAt int
}

// Get returns the value of a key, stale or not.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	value, ok = m.entries[key]
	return value, ok
}

// Len returns the number of entries, including stale ones that were not removed yet.
func (m *Map[K, V]) Len() int { return len(m.entries) }

// Delete forgets a key.
func (m *Map[K, V]) Delete(key K) { delete(m.entries, key) }

// Put sets the value of a key. If there are twice as many entries as the last sweep left, it first removes stale
// ones.
func (m *Map[K, V]) Put(key K, value V, stale func(V) bool) {
	if m.entries == nil || len(m.entries) >= m.sweepAt {
		fresh := map[K]V{} // a map never shrinks
		for k, v := range m.entries {
			if !stale(v) && (m.Most == 0 || len(fresh) < m.Most/2) {
				fresh[k] = v
			}
		}
		m.entries, m.sweepAt = fresh, max(least, 2*len(fresh))
		if m.Most > 0 {
			m.sweepAt = min(m.sweepAt, m.Most)
		}
	}
	m.entries[key] = value
}

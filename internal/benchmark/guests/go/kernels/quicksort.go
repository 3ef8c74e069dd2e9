package kernels

type record struct{ key, index uint32 }

// Quicksort sorts size random records by a comparison function; the checksum is of their order.
func Quicksort(size int32) uint64 {
	source := random(5)
	records := make([]record, max(size, 0))
	for i := range records {
		records[i] = record{key: source.next() >> 12, index: uint32(i)}
	}
	quicksort(records, before)
	checksum := uint64(checksumSeed)
	for _, r := range records {
		checksum = mix(checksum, uint64(r.key)<<32|uint64(r.index))
	}
	return checksum
}

// before orders by key, and records of one key as they stood.
func before(a, b record) bool {
	if a.key != b.key {
		return a.key < b.key
	}
	return a.index < b.index
}

func quicksort(records []record, before func(a, b record) bool) {
	if len(records) < 2 {
		return
	}
	pivot := records[len(records)/2]
	low, high := 0, len(records)-1
	for low <= high {
		for before(records[low], pivot) {
			low++
		}
		for before(pivot, records[high]) {
			high--
		}
		if low <= high {
			records[low], records[high] = records[high], records[low]
			low++
			high--
		}
	}
	quicksort(records[:high+1], before)
	quicksort(records[low:], before)
}

package kernels

// Sort sorts size random numbers by quicksort, down to single numbers. The checksum is of their order
// and of the depth of the recursion.
func Sort(size int32) uint64 {
	source := random(16)
	numbers := make([]uint32, max(size, 0))
	for i := range numbers {
		numbers[i] = source.next() >> 8
	}
	checksum := mix(checksumSeed, uint64(sortNumbers(numbers)))
	for _, n := range numbers {
		checksum = mix(checksum, uint64(n))
	}
	return checksum
}

// sortNumbers returns how deep its calls nest.
func sortNumbers(numbers []uint32) uint32 {
	if len(numbers) < 2 {
		return 1
	}
	pivot := numbers[len(numbers)/2]
	low, end := 0, len(numbers)
	for low < end {
		for numbers[low] < pivot {
			low++
		}
		for pivot < numbers[end-1] {
			end--
		}
		if low < end {
			numbers[low], numbers[end-1] = numbers[end-1], numbers[low]
			low++
			end--
		}
	}
	left := sortNumbers(numbers[:end])
	return 1 + max(left, sortNumbers(numbers[low:]))
}

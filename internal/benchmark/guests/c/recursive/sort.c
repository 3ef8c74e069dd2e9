#include "../kernels/kernels.h"

// sort_numbers returns how deep its calls nest.
static uint32_t sort_numbers(uint32_t *numbers, size_t length) {
    if (length < 2) return 1;
    uint32_t pivot = numbers[length / 2];
    size_t low = 0, end = length;
    while (low < end) {
        while (numbers[low] < pivot) low++;
        while (pivot < numbers[end - 1]) end--;
        if (low < end) {
            uint32_t kept = numbers[low];
            numbers[low++] = numbers[end - 1];
            numbers[--end] = kept;
        }
    }
    uint32_t left = sort_numbers(numbers, end);
    uint32_t right = sort_numbers(numbers + low, length - low);
    return 1 + (left > right ? left : right);
}

// Sorts size random numbers by quicksort, down to single numbers. The checksum is of their order and
// of the depth of the recursion.
KERNEL(sort) {
    size_t length = positive(size);
    uint64_t source = 16;
    uint32_t *numbers = resize(NULL, length * sizeof *numbers);
    for (size_t i = 0; i < length; i++) numbers[i] = next(&source) >> 8;
    uint64_t checksum = mix(checksum_seed, sort_numbers(numbers, length));
    for (size_t i = 0; i < length; i++) checksum = mix(checksum, numbers[i]);
    free(numbers);
    return checksum;
}

#include "../kernels/kernels.h"

static uint32_t male(uint32_t n);

// Inlined into each other, the two would be one function that calls itself.
__attribute__((noinline)) static uint32_t female(uint32_t n) {
    if (n == 0) return 1;
    return n - male(female(n - 1));
}

__attribute__((noinline)) static uint32_t male(uint32_t n) {
    if (n == 0) return 0;
    return n - female(male(n - 1));
}

// Computes Hofstadter's female and male sequences up to size. Each is defined by the other.
KERNEL(mutual) {
    uint64_t checksum = checksum_seed;
    for (int32_t n = 1; n <= size; n++) checksum = mix(mix(checksum, female((uint32_t)n)), male((uint32_t)n));
    return checksum;
}

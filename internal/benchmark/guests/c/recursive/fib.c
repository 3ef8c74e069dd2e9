#include "../kernels/kernels.h"

static uint64_t visit(uint32_t n) {
    if (n < 2) return n;
    return mix(visit(n - 1), visit(n - 2));
}

// Makes the calls of Fibonacci's recursion for size, and folds what they return.
KERNEL(fib) {
    if (size < 1) return checksum_seed;
    return visit((uint32_t)size);
}

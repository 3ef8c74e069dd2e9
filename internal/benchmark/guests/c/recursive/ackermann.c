#include "../kernels/kernels.h"

// How many calls there were, and how deep they nest.
struct calls {
    uint64_t count;
    uint32_t depth, deepest;
};

// What it does after the recursive call keeps a compiler from making a loop of that.
static uint32_t value(struct calls *calls, uint32_t m, uint32_t n) {
    calls->count++;
    if (++calls->depth > calls->deepest) calls->deepest = calls->depth;
    uint32_t result;
    if (m == 0) {
        result = n + 1;
    } else if (n == 0) {
        result = value(calls, m - 1, 1);
    } else {
        result = value(calls, m - 1, value(calls, m, n - 1));
    }
    calls->depth--;
    return result;
}

// Computes Ackermann's function of 2 and size.
KERNEL(ackermann) {
    if (size < 1) return checksum_seed;
    struct calls calls = {0};
    uint32_t result = value(&calls, 2, (uint32_t)size);
    return mix(mix(mix(checksum_seed, result), calls.count), calls.deepest);
}

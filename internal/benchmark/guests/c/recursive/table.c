#include "../kernels/kernels.h"

enum { table_depth = 24 };

// Steps call each other through a table, which of them their state says.
typedef uint64_t step(uint32_t depth, uint64_t state);

static step once, twice, turned, behind;

static step *const steps[4] = {once, twice, turned, behind};

static inline uint64_t next_step(uint32_t depth, uint64_t state) {
    if (depth == 0) return state;
    return steps[state >> 40 & 3](depth - 1, state);
}

static uint64_t once(uint32_t depth, uint64_t state) { return mix(next_step(depth, mix(state, 1)), depth); }

static uint64_t twice(uint32_t depth, uint64_t state) {
    uint64_t first = next_step(depth, mix(state, 2));
    return mix(first, next_step(depth, mix(state, 3)));
}

static uint64_t turned(uint32_t depth, uint64_t state) { return next_step(depth, state << 13 | state >> 51) ^ state; }

static uint64_t behind(uint32_t depth, uint64_t state) { return mix(state, next_step(depth, mix(state, 4))); }

// Starts size times in a random state.
KERNEL(table) {
    uint64_t source = 18, checksum = checksum_seed;
    for (int32_t i = 0; i < size; i++) {
        checksum = mix(checksum, next_step(table_depth, mix(checksum_seed, next(&source))));
    }
    return checksum;
}

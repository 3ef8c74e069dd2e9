#include "kernels.h"

// Size turns of the smallest loop whose every turn needs the turn before.
KERNEL(spin) {
    uint64_t turns = positive(size), x = turns;
    for (uint64_t i = 0; i < turns; i++) x = x * 31 + (i ^ x >> 3);
    return x;
}

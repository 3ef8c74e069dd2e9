#include "kernels.h"

// Finds the primes below size.
KERNEL(sieve) {
    size_t n = positive(size);
    uint64_t count = 0, sum = 0;
    bool *composite = allocate_zeroed(n, sizeof *composite);
    for (size_t p = 2; p < n; p++) {
        if (composite[p]) continue;
        count++;
        sum += p;
        for (size_t multiple = 2 * p; multiple < n; multiple += p) composite[multiple] = true;
    }
    free(composite);
    return mix(mix(checksum_seed, count), sum);
}

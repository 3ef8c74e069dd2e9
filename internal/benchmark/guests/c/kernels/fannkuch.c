#include "kernels.h"

// Pancakes goes through all orders of a stack. An order's flips are how often the
// topmost pancake T can turn over the first T+1 before the 0 is on top.
struct pancakes {
    int *order, *turned, length;
    uint64_t orders;  // seen so far
    uint64_t most;    // flips of the worst order
    uint64_t balance; // flips of even orders minus those of odd ones
};

static uint64_t count_flips(struct pancakes *p) {
    int *turned = p->turned;
    uint64_t flips = 0;
    memcpy(turned, p->order, (size_t)p->length * sizeof *turned);
    for (; turned[0] != 0; flips++) {
        for (int low = 0, high = turned[0]; low < high; low++, high--) {
            int kept = turned[low];
            turned[low] = turned[high];
            turned[high] = kept;
        }
    }
    return flips;
}

static void visit(struct pancakes *p) {
    uint64_t flips = count_flips(p);
    if (flips > p->most) p->most = flips;
    p->balance += p->orders % 2 == 0 ? flips : -flips;
    p->orders++;
}

// permute visits all orders of the first n pancakes and leaves them as they were.
static void permute(struct pancakes *p, int n) {
    if (n == 1) {
        visit(p);
        return;
    }
    for (int i = 0; i < n; i++) {
        permute(p, n - 1);
        int first = p->order[0];
        memmove(p->order, p->order + 1, (size_t)(n - 1) * sizeof *p->order);
        p->order[n - 1] = first;
    }
}

// Flips every permutation of size numbers.
KERNEL(fannkuch) {
    int n = size > 1 ? size : 1;
    struct pancakes p = {.length = n};
    p.order = allocate_zeroed((size_t)n, sizeof *p.order);
    p.turned = allocate_zeroed((size_t)n, sizeof *p.turned);
    for (int i = 0; i < n; i++) p.order[i] = i;
    permute(&p, n);
    free(p.order);
    free(p.turned);
    return mix(mix(mix(checksum_seed, p.orders), p.most), p.balance);
}

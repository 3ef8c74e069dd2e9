#include "kernels.h"

struct record { uint32_t key, index; };

typedef bool comparison(const struct record *a, const struct record *b);

// before orders by key, and records of one key as they stood.
static bool before(const struct record *a, const struct record *b) {
    if (a->key != b->key) return a->key < b->key;
    return a->index < b->index;
}

static void sort(struct record *records, ptrdiff_t length, comparison *before) {
    if (length < 2) return;
    struct record pivot = records[length / 2];
    ptrdiff_t low = 0, high = length - 1;
    while (low <= high) {
        while (before(&records[low], &pivot)) low++;
        while (before(&pivot, &records[high])) high--;
        if (low <= high) {
            struct record kept = records[low];
            records[low++] = records[high];
            records[high--] = kept;
        }
    }
    sort(records, high + 1, before);
    sort(records + low, length - low, before);
}

// Sorts size random records by a comparison function; the checksum is of their order.
KERNEL(quicksort) {
    size_t length = positive(size);
    uint64_t source = 5, checksum = checksum_seed;
    struct record *records = resize(NULL, length * sizeof *records);
    for (size_t i = 0; i < length; i++) {
        records[i].key = next(&source) >> 12;
        records[i].index = (uint32_t)i;
    }
    sort(records, (ptrdiff_t)length, before);
    for (size_t i = 0; i < length; i++) {
        checksum = mix(checksum, (uint64_t)records[i].key << 32 | records[i].index);
    }
    free(records);
    return checksum;
}

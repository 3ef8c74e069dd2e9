#include "kernels.h"

enum { name_limit = 16 };

struct slot {
    char *key; // NULL: free
    uint64_t hash, count;
    size_t length;
};

// Table counts strings: open addressing with linear probing. Its length is a power of two.
struct table {
    struct slot *slots;
    size_t length, used;
};

static uint64_t hash_of(const char *key, size_t length) {
    uint64_t hash = checksum_seed;
    for (size_t i = 0; i < length; i++) hash = mix(hash, (uint8_t)key[i]);
    return hash ^ hash >> 32;
}

// find returns the key's slot, or the free one where it belongs.
static struct slot *find(const struct table *t, const char *key, size_t length, uint64_t hash) {
    size_t mask = t->length - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct slot *s = &t->slots[i];
        if (!s->key) return s;
        if (s->hash == hash && s->length == length && memcmp(s->key, key, length) == 0) return s;
    }
}

static void grow(struct table *t) {
    struct slot *old = t->slots;
    size_t length = t->length, mask = 2 * length - 1;
    t->length = 2 * length;
    t->slots = allocate_zeroed(t->length, sizeof *t->slots);
    for (size_t at = 0; at < length; at++) {
        if (!old[at].key) continue;
        size_t i = old[at].hash & mask;
        while (t->slots[i].key) i = (i + 1) & mask;
        t->slots[i] = old[at];
    }
    free(old);
}

static void add(struct table *t, const char *key, size_t length) {
    if (4 * (t->used + 1) > 3 * t->length) grow(t);
    uint64_t hash = hash_of(key, length);
    struct slot *s = find(t, key, length, hash);
    if (!s->key) {
        s->key = resize(NULL, length);
        memcpy(s->key, key, length);
        s->length = length;
        s->hash = hash;
        t->used++;
    }
    s->count++;
}

static size_t write_name(char name[name_limit], uint32_t number) {
    char digits[10];
    size_t length = 5, count = 0;
    memcpy(name, "name/", length);
    do digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (count) name[length++] = digits[--count];
    return length;
}

// Counts size random names, then looks up twice as many.
KERNEL(hash_map) {
    uint32_t n = (uint32_t)positive(size);
    uint64_t source = 7, checksum = checksum_seed;
    struct table counts = {.length = 16};
    counts.slots = allocate_zeroed(counts.length, sizeof *counts.slots);
    char name[name_limit];
    for (uint32_t i = 0; i < n; i++) {
        size_t length = write_name(name, next(&source) % n);
        add(&counts, name, length);
    }
    for (uint32_t i = 0; i < 2 * n; i++) {
        size_t length = write_name(name, next(&source) % n);
        checksum = mix(checksum, find(&counts, name, length, hash_of(name, length))->count);
    }
    checksum = mix(checksum, counts.used);
    for (size_t i = 0; i < counts.length; i++) free(counts.slots[i].key);
    free(counts.slots);
    return checksum;
}

// What the kernels share. Each kernel is exported under its name and gives the checksum
// that its versions in Go and Rust give for the same size.
#ifndef KERNELS_H
#define KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL(name) __attribute__((export_name(#name))) uint64_t name(int32_t size)

// A linear congruential generator with Knuth's MMIX constants.
static inline uint32_t next(uint64_t *source) {
    *source = *source * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*source >> 32);
}

// unit returns a number in [0, 1).
static inline double unit(uint64_t *source) { return next(source) / 4294967296.0; }

static const uint64_t checksum_seed = 14695981039346656037u;

// mix folds a value into a checksum: FNV-1a over whole words.
static inline uint64_t mix(uint64_t checksum, uint64_t value) {
    return (checksum ^ value) * 1099511628211u;
}

static inline uint64_t mix_double(uint64_t checksum, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return mix(checksum, bits);
}

// The allocators end the program when memory is short, so their callers need no check.
static inline void *allocate_zeroed(size_t count, size_t bytes) {
    void *block = calloc(count ? count : 1, bytes);
    if (!block) __builtin_trap();
    return block;
}

static inline void *resize(void *old, size_t bytes) {
    void *block = realloc(old, bytes ? bytes : 1);
    if (!block) __builtin_trap();
    return block;
}

static inline size_t positive(int32_t size) { return size > 0 ? (size_t)size : 0; }

static inline uint8_t *random_bytes(uint64_t *source, size_t count) {
    uint8_t *bytes = resize(NULL, count);
    for (size_t i = 0; i < count; i++) bytes[i] = (uint8_t)next(source);
    return bytes;
}

#endif

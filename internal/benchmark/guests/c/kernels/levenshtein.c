#include "kernels.h"

static char *random_word(uint64_t *source, size_t length) {
    char *word = resize(NULL, length);
    for (size_t i = 0; i < length; i++) word[i] = (char)('a' + (next(source) >> 30));
    return word;
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static uint32_t distance(const char *a, const char *b, size_t length) {
    // row[j]: the distance of a's read part and the first j letters of b
    uint32_t *row = resize(NULL, (length + 1) * sizeof *row);
    for (size_t j = 0; j <= length; j++) row[j] = (uint32_t)j;
    for (size_t i = 0; i < length; i++) {
        uint32_t diagonal = row[0];
        row[0] = (uint32_t)i + 1;
        for (size_t j = 0; j < length; j++) {
            uint32_t cost = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = least(cost, least(diagonal, row[j]) + 1);
        }
    }
    uint32_t whole = row[length];
    free(row);
    return whole;
}

// The edit distance of two random words of size letters out of four.
KERNEL(levenshtein) {
    size_t length = positive(size);
    uint64_t source = 8;
    char *a = random_word(&source, length), *b = random_word(&source, length);
    uint64_t checksum = mix(checksum_seed, distance(a, b, length));
    free(a);
    free(b);
    return checksum;
}

// Patterns as machines that may be in several states at once.
#ifndef REGEX_PARSE_H
#define REGEX_PARSE_H

#include "../kernels/kernels.h"

enum operation {
    op_match,
    op_byte,  // first: the byte
    op_class, // first: the set of bytes
    op_any,
    op_jump,  // first: how far
    op_split, // first, second: how far, one way and the other
};

// A state. What reads a byte leads to the next one.
struct state {
    enum operation operation;
    int32_t first, second;
};

struct byte_set { uint64_t bits[4]; };

struct regex {
    struct state *program;
    size_t length, room;
    struct byte_set *classes;
    size_t class_count;
};

// compile is for patterns that are known to be right.
struct regex compile(const char *pattern);
void release(struct regex *r);

#endif

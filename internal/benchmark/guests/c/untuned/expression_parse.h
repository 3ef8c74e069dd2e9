// Formulas as trees. Numbers wrap around, and dividing by zero gives zero.
#ifndef EXPRESSION_PARSE_H
#define EXPRESSION_PARSE_H

#include "../kernels/kernels.h"

enum { variable_count = 4 }; // a to d

// A formula or a part of one.
struct node {
    int64_t (*value)(const struct node *, const int64_t *variables);
    union {
        int64_t constant;
        uint32_t variable;
        int64_t (*unary)(int64_t);
        int64_t (*binary)(int64_t, int64_t);
    };
    struct node *operands[3]; // NULL: not so many
};

// parse_formula returns NULL where the text is none.
struct node *parse_formula(const uint8_t *text, size_t length);
void release_formula(struct node *n);

static inline int64_t value_of(const struct node *n, const int64_t *variables) { return n->value(n, variables); }

#endif

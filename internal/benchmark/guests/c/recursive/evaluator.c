#include "../kernels/kernels.h"

enum {
    depth_of_tree = 10,
    variable_count = 4,
};

// A term is evaluated by a function that it points to. Numbers wrap around.
struct term {
    uint64_t (*evaluate)(const struct term *term, const uint64_t *row);
    uint64_t number;
    struct term *operands[3];
};

static inline uint64_t evaluate(const struct term *t, const uint64_t *row) { return t->evaluate(t, row); }

static uint64_t constant(const struct term *t, const uint64_t *row) {
    (void)row;
    return t->number;
}

static uint64_t variable(const struct term *t, const uint64_t *row) { return row[t->number]; }

static uint64_t sum(const struct term *t, const uint64_t *row) {
    uint64_t left = evaluate(t->operands[0], row);
    return left + evaluate(t->operands[1], row);
}

static uint64_t difference(const struct term *t, const uint64_t *row) {
    uint64_t left = evaluate(t->operands[0], row);
    return left - evaluate(t->operands[1], row);
}

static uint64_t product(const struct term *t, const uint64_t *row) {
    uint64_t left = evaluate(t->operands[0], row);
    return left * evaluate(t->operands[1], row);
}

static uint64_t choice(const struct term *t, const uint64_t *row) {
    return evaluate(t->operands[(int64_t)evaluate(t->operands[0], row) > 0 ? 1 : 2], row);
}

static struct term *random_term(uint64_t *source, int depth) {
    struct term *t = allocate_zeroed(1, sizeof *t);
    uint32_t kind = (next(source) >> 16) % 16;
    if (depth == 0 || kind == 0) {
        uint32_t number = next(source) >> 8;
        bool is_variable = number % 2 == 0;
        t->evaluate = is_variable ? variable : constant;
        t->number = number / 2 % (is_variable ? variable_count : 1000);
        return t;
    }
    t->operands[0] = random_term(source, depth - 1);
    t->operands[1] = random_term(source, depth - 1);
    if (kind < 6) {
        t->evaluate = sum;
    } else if (kind < 10) {
        t->evaluate = difference;
    } else if (kind < 14) {
        t->evaluate = product;
    } else {
        t->evaluate = choice;
        t->operands[2] = random_term(source, depth - 1);
    }
    return t;
}

static void release(struct term *t) {
    if (!t) return;
    for (int i = 0; i < 3; i++) release(t->operands[i]);
    free(t);
}

// Evaluates one random tree for size rows of values.
KERNEL(evaluator) {
    uint64_t source = 15, checksum = checksum_seed;
    struct term *tree = random_term(&source, depth_of_tree);
    for (int32_t i = 0; i < size; i++) {
        uint64_t row[variable_count];
        for (size_t v = 0; v < variable_count; v++) row[v] = (uint64_t)(next(&source) % 2000) - 1000;
        checksum = mix(checksum, evaluate(tree, row));
    }
    release(tree);
    return checksum;
}

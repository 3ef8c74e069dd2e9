#include "expression_parse.h"
#include "text.h"

enum {
    formula_depth = 6,
    formula_rows = 32, // of values for the variables
};

static void write_formula(struct text *t, uint64_t *source, int depth);

static void write_leaf(struct text *t, uint64_t *source) {
    uint32_t number = next(source) >> 8;
    if (number % 2 == 0) {
        write_byte(t, (uint8_t)('a' + number / 2 % variable_count));
    } else {
        write_number(t, number / 2 % 1000);
    }
}

static void write_operation(struct text *t, uint64_t *source, int depth) {
    write_formula(t, source, depth);
    write_byte(t, ' ');
    write_byte(t, (uint8_t)"++--**/%<"[(next(source) >> 16) % 9]);
    write_byte(t, ' ');
    write_formula(t, source, depth);
}

static void write_call(struct text *t, uint64_t *source, const char *name, int arguments, int depth) {
    write_string(t, name);
    write_byte(t, '(');
    for (int i = 0; i < arguments; i++) {
        if (i > 0) write_string(t, ", ");
        write_formula(t, source, depth);
    }
    write_byte(t, ')');
}

// write_formula makes a random formula.
static void write_formula(struct text *t, uint64_t *source, int depth) {
    uint32_t kind = (next(source) >> 16) % 16;
    if (depth == 0 || kind == 0) {
        write_leaf(t, source);
    } else if (kind < 7) {
        write_operation(t, source, depth - 1);
    } else if (kind < 12) {
        write_byte(t, '(');
        write_operation(t, source, depth - 1);
        write_byte(t, ')');
    } else if (kind == 12) {
        write_byte(t, '-');
        write_call(t, source, "abs", 1, depth - 1);
    } else if (kind == 13) {
        write_call(t, source, "min", 2, depth - 1);
    } else if (kind == 14) {
        write_call(t, source, "max", 2, depth - 1);
    } else {
        write_call(t, source, "if", 3, depth - 1);
    }
}

// Writes size formulas, parses each and works it out for several rows of values.
KERNEL(expression) {
    uint64_t source = 11, checksum = checksum_seed;
    struct text text = {0};
    for (int32_t i = 0; i < size; i++) {
        text.length = 0;
        write_formula(&text, &source, formula_depth);
        struct node *formula = parse_formula(text.bytes, text.length);
        if (!formula) {
            checksum = 0;
            break;
        }
        for (int row = 0; row < formula_rows; row++) {
            int64_t variables[variable_count];
            for (size_t v = 0; v < variable_count; v++) variables[v] = (int64_t)(next(&source) % 2000) - 1000;
            checksum = mix(checksum, (uint64_t)value_of(formula, variables));
        }
        release_formula(formula);
    }
    free(text.bytes);
    return checksum;
}

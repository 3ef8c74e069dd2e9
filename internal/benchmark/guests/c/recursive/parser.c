#include "../kernels/kernels.h"

enum {
    sum_depth = 6,
    sum_reads = 8,    // of each text
    sum_length = 1024, // more than a text of this depth has
};

struct text {
    uint8_t bytes[sum_length];
    size_t length;
};

static void append(struct text *t, uint8_t byte) { t->bytes[t->length++] = byte; }

static void append_number(struct text *t, uint32_t number) {
    if (number >= 10) append_number(t, number / 10);
    append(t, (uint8_t)('0' + number % 10));
}

// append_sum writes a random text.
static void append_sum(struct text *t, uint64_t *source, int depth) {
    uint32_t kind = (next(source) >> 16) % 16;
    if (depth == 0 || kind == 0) {
        append_number(t, (next(source) >> 8) % 1000);
    } else if (kind < 14) {
        if (kind < 7) append(t, '(');
        append_sum(t, source, depth - 1);
        append(t, (uint8_t)"+-*"[(next(source) >> 16) % 3]);
        append_sum(t, source, depth - 1);
        if (kind < 7) append(t, ')');
    } else {
        append(t, '-');
        append_sum(t, source, depth - 1);
    }
}

// A reader reads a text that is known to be right. Numbers wrap around.
struct reader {
    const struct text *text;
    size_t at;
};

static uint64_t sum(struct reader *r);

// peek returns the next byte, or zero at the end.
static uint8_t peek(const struct reader *r) { return r->at == r->text->length ? 0 : r->text->bytes[r->at]; }

static uint64_t factor(struct reader *r) {
    if (peek(r) == '-') {
        r->at++;
        return -factor(r);
    }
    uint64_t value = 0;
    if (peek(r) == '(') {
        r->at++;
        value = sum(r);
        r->at++;
        return value;
    }
    while (peek(r) >= '0' && peek(r) <= '9') value = value * 10 + (uint64_t)(r->text->bytes[r->at++] - '0');
    return value;
}

static uint64_t product(struct reader *r) {
    uint64_t value = factor(r);
    while (peek(r) == '*') {
        r->at++;
        value *= factor(r);
    }
    return value;
}

static uint64_t sum(struct reader *r) {
    uint64_t value = product(r);
    for (;;) {
        uint8_t operator = peek(r);
        if (operator != '+' && operator != '-') return value;
        r->at++;
        uint64_t operand = product(r);
        value = operator == '+' ? value + operand : value - operand;
    }
}

// Writes size arithmetic texts, and works each out several times as it reads it by recursive descent.
KERNEL(parser) {
    uint64_t source = 17, checksum = checksum_seed;
    struct text text;
    for (int32_t i = 0; i < size; i++) {
        text.length = 0;
        append_sum(&text, &source, sum_depth);
        for (int read = 0; read < sum_reads; read++) {
            struct reader r = {&text, 0};
            checksum = mix(checksum, sum(&r));
        }
    }
    return checksum;
}

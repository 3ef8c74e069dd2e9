#include "expression_parse.h"

static int64_t constant_value(const struct node *n, const int64_t *variables) {
    (void)variables;
    return n->constant;
}

static int64_t variable_value(const struct node *n, const int64_t *variables) { return variables[n->variable]; }

static int64_t unary_value(const struct node *n, const int64_t *variables) {
    return n->unary(value_of(n->operands[0], variables));
}

static int64_t binary_value(const struct node *n, const int64_t *variables) {
    int64_t left = value_of(n->operands[0], variables);
    return n->binary(left, value_of(n->operands[1], variables));
}

static int64_t choice_value(const struct node *n, const int64_t *variables) {
    return value_of(n->operands[value_of(n->operands[0], variables) ? 1 : 2], variables);
}

// What can overflow is computed without a sign, which wraps around.
static int64_t negate(int64_t a) { return (int64_t)(0 - (uint64_t)a); }
static int64_t absolute(int64_t a) { return a < 0 ? negate(a) : a; }
static int64_t add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t subtract(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static int64_t multiply(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t is_less(int64_t a, int64_t b) { return a < b; }

static int64_t divide(int64_t a, int64_t b) {
    if (b == 0) return 0;
    return b == -1 ? negate(a) : a / b;
}

static int64_t remainder_of(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

// A parser reads a formula by recursive descent.
struct parser {
    const uint8_t *at, *end;
    bool wrong; // what it returned is of no use
};

static struct node *new_node(struct node fields) {
    struct node *n = resize(NULL, sizeof *n);
    *n = fields;
    return n;
}

static struct node *new_constant(int64_t value) {
    return new_node((struct node){.value = constant_value, .constant = value});
}

static struct node *new_unary(int64_t (*apply)(int64_t), struct node *operand) {
    return new_node((struct node){.value = unary_value, .unary = apply, .operands = {operand}});
}

static struct node *new_binary(int64_t (*apply)(int64_t, int64_t), struct node *left, struct node *right) {
    return new_node((struct node){.value = binary_value, .binary = apply, .operands = {left, right}});
}

// peek returns the next byte that is not a space, or zero at the end.
static uint8_t peek(struct parser *p) {
    while (p->at < p->end && *p->at == ' ') p->at++;
    return p->at < p->end ? *p->at : 0;
}

// accept reads the byte if it is the next.
static bool accept(struct parser *p, uint8_t byte) {
    if (peek(p) != byte) return false;
    p->at++;
    return true;
}

static void expect(struct parser *p, uint8_t byte) {
    if (!accept(p, byte)) p->wrong = true;
}

static bool is_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }

static bool is_letter(uint8_t byte) { return byte >= 'a' && byte <= 'z'; }

static struct node *comparison(struct parser *p);

static struct node *number(struct parser *p) {
    uint64_t value = 0;
    while (p->at < p->end && is_digit(*p->at)) value = 10 * value + (uint64_t)(*p->at++ - '0');
    return new_constant((int64_t)value);
}

// argument reads one of the arguments behind the first.
static struct node *argument(struct parser *p) {
    expect(p, ',');
    return comparison(p);
}

static bool is(const uint8_t *name, size_t length, const char *wanted) {
    return length == strlen(wanted) && memcmp(name, wanted, length) == 0;
}

// name reads a variable or a call.
static struct node *name(struct parser *p) {
    const uint8_t *start = p->at;
    while (p->at < p->end && is_letter(*p->at)) p->at++;
    size_t length = (size_t)(p->at - start);
    if (length == 1 && *start < 'a' + variable_count) {
        return new_node((struct node){.value = variable_value, .variable = (uint32_t)(*start - 'a')});
    }
    expect(p, '(');
    struct node *made = comparison(p);
    if (is(start, length, "abs")) {
        made = new_unary(absolute, made);
    } else if (is(start, length, "min")) {
        made = new_binary(smaller, made, argument(p));
    } else if (is(start, length, "max")) {
        made = new_binary(larger, made, argument(p));
    } else if (is(start, length, "if")) {
        struct node *then = argument(p);
        made = new_node((struct node){.value = choice_value, .operands = {made, then, argument(p)}});
    } else {
        p->wrong = true;
    }
    expect(p, ')');
    return made;
}

static struct node *factor(struct parser *p) {
    uint8_t byte = peek(p);
    if (byte == '-') {
        p->at++;
        return new_unary(negate, factor(p));
    }
    if (byte == '(') {
        p->at++;
        struct node *inner = comparison(p);
        expect(p, ')');
        return inner;
    }
    if (is_digit(byte)) return number(p);
    if (is_letter(byte)) return name(p);
    p->wrong = true;
    return new_constant(0);
}

static struct node *product(struct parser *p) {
    struct node *left = factor(p);
    for (;;) {
        if (accept(p, '*')) {
            left = new_binary(multiply, left, factor(p));
        } else if (accept(p, '/')) {
            left = new_binary(divide, left, factor(p));
        } else if (accept(p, '%')) {
            left = new_binary(remainder_of, left, factor(p));
        } else {
            return left;
        }
    }
}

static struct node *sum(struct parser *p) {
    struct node *left = product(p);
    for (;;) {
        if (accept(p, '+')) {
            left = new_binary(add, left, product(p));
        } else if (accept(p, '-')) {
            left = new_binary(subtract, left, product(p));
        } else {
            return left;
        }
    }
}

static struct node *comparison(struct parser *p) {
    struct node *left = sum(p);
    while (accept(p, '<')) left = new_binary(is_less, left, sum(p));
    return left;
}

struct node *parse_formula(const uint8_t *text, size_t length) {
    struct parser p = {.at = text, .end = text + length};
    struct node *parsed = comparison(&p);
    if (!p.wrong && peek(&p) == 0) return parsed;
    release_formula(parsed);
    return NULL;
}

void release_formula(struct node *n) {
    if (!n) return;
    for (size_t i = 0; i < sizeof n->operands / sizeof *n->operands; i++) release_formula(n->operands[i]);
    free(n);
}

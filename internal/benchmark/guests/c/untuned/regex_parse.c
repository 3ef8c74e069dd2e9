#include "regex_parse.h"

// A parser turns a pattern into states by recursive descent. Distances are relative, so
// that what was made can be moved.
struct parser {
    const char *at;
    struct regex made;
};

static void insert(struct regex *r, size_t at, enum operation operation, ptrdiff_t first, ptrdiff_t second) {
    if (r->length == r->room) {
        r->room = 2 * r->room + 16;
        r->program = resize(r->program, r->room * sizeof *r->program);
    }
    memmove(r->program + at + 1, r->program + at, (r->length - at) * sizeof *r->program);
    r->program[at] = (struct state){operation, (int32_t)first, (int32_t)second};
    r->length++;
}

static void emit(struct regex *r, enum operation operation, ptrdiff_t first, ptrdiff_t second) {
    insert(r, r->length, operation, first, second);
}

// accept reads the byte if it is the next.
static bool accept(struct parser *p, char byte) {
    if (*p->at != byte) return false;
    p->at++;
    return true;
}

// class reads single bytes and ranges.
static void class(struct parser *p) {
    struct byte_set set = {{0}};
    while (!accept(p, ']')) {
        uint8_t first = (uint8_t)*p->at++, last = first;
        if (accept(p, '-')) last = (uint8_t)*p->at++;
        for (unsigned byte = first; byte <= last; byte++) set.bits[byte >> 6] |= UINT64_C(1) << (byte & 63);
    }
    struct regex *r = &p->made;
    emit(r, op_class, (ptrdiff_t)r->class_count, 0);
    r->classes = resize(r->classes, (r->class_count + 1) * sizeof *r->classes);
    r->classes[r->class_count++] = set;
}

static void alternatives(struct parser *p);

static void single(struct parser *p) {
    char byte = *p->at++;
    switch (byte) {
    case '(':
        alternatives(p);
        accept(p, ')');
        break;
    case '[': class(p); break;
    case '.': emit(&p->made, op_any, 0, 0); break;
    case '\\': emit(&p->made, op_byte, (uint8_t)*p->at++, 0); break;
    default: emit(&p->made, op_byte, (uint8_t)byte, 0);
    }
}

// repeated reads one thing and how often it may stand.
static void repeated(struct parser *p) {
    struct regex *r = &p->made;
    size_t start = r->length;
    single(p);
    ptrdiff_t length = (ptrdiff_t)(r->length - start);
    if (accept(p, '*')) {
        insert(r, start, op_split, 1, length + 2);
        emit(r, op_jump, -(length + 1), 0);
    } else if (accept(p, '+')) {
        emit(r, op_split, -length, 1);
    } else if (accept(p, '?')) {
        insert(r, start, op_split, 1, length + 1);
    }
}

static void alternatives(struct parser *p) {
    struct regex *r = &p->made;
    size_t start = r->length;
    while (*p->at && *p->at != '|' && *p->at != ')') repeated(p);
    if (!accept(p, '|')) return;
    insert(r, start, op_split, 1, (ptrdiff_t)(r->length - start) + 2);
    size_t jump = r->length;
    emit(r, op_jump, 0, 0);
    alternatives(p);
    r->program[jump].first = (int32_t)(r->length - jump);
}

struct regex compile(const char *pattern) {
    struct parser p = {.at = pattern};
    alternatives(&p);
    emit(&p.made, op_match, 0, 0);
    return p.made;
}

void release(struct regex *r) {
    free(r->program);
    free(r->classes);
}

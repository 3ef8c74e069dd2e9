#include "types.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { longest_number = 400 };

// exact converts what a double holds exactly, with one correctly rounded operation.
static bool exact(uint64_t digits, int exponent, bool negative, double *real) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (digits > (uint64_t)1 << 53 || exponent < -22 || exponent > 22) return false;
    double value = exponent < 0 ? (double)digits / powers[-exponent] : (double)digits * powers[exponent];
    *real = negative ? -value : value;
    return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

enum number read_number(const char *text, size_t length, sqlite3_int64 *integer, double *real) {
    const char *p = text, *end = text + length;
    uint64_t digits = 0;
    int exponent = 0;
    bool negative = false, overflow = false, whole = true;
    if (length == 0 || length > longest_number) return not_a_number;
    if (*p == '-') negative = true, p++;
    if (p == end || !is_digit(*p) || (*p == '0' && p + 1 < end && is_digit(p[1]))) return not_a_number;
    for (; p < end && is_digit(*p); p++) {
        overflow = overflow || digits > (UINT64_MAX - 9) / 10;
        digits = digits * 10 + (uint64_t)(*p - '0');
    }
    if (p < end && *p == '.') {
        whole = false;
        const char *from = ++p;
        for (; p < end && is_digit(*p); p++) {
            overflow = overflow || digits > (UINT64_MAX - 9) / 10;
            digits = digits * 10 + (uint64_t)(*p - '0');
            exponent--;
        }
        if (p == from) return not_a_number;
    }
    if (p < end && (*p | 32) == 'e') {
        int given = 0;
        bool minus = false;
        whole = false;
        p++;
        if (p < end && (*p == '+' || *p == '-')) minus = *p++ == '-';
        if (p == end) return not_a_number;
        for (; p < end && is_digit(*p); p++) given = given < 100000 ? given * 10 + (*p - '0') : given;
        exponent += minus ? -given : given;
    }
    if (p != end) return not_a_number;
    if (whole) {
        if (overflow || digits > (uint64_t)INT64_MAX + negative) return not_a_number;
        *integer = negative ? (sqlite3_int64)(0 - digits) : (sqlite3_int64)digits;
        *real = (double)*integer;
        return number_integer;
    }
    if (overflow || !exact(digits, exponent, negative, real)) {
        char copy[longest_number + 1];
        memcpy(copy, text, length);
        copy[length] = 0;
        *real = strtod(copy, NULL);
        if (isinf(*real)) return not_a_number;
    }
    return number_real;
}

static unsigned see_number(const struct records *r, const struct field *f) {
    sqlite3_int64 integer;
    double real;
    switch (read_number(r->record + f->offset, f->length, &integer, &real)) {
    case number_integer:
        return integer > (1LL << 53) || integer < -(1LL << 53) ? seen_integer | seen_wide : seen_integer;
    case number_real:
        return seen_real;
    default:
        return seen_text;
    }
}

unsigned see(unsigned seen, const struct records *r, const struct field *f) {
    switch ((enum kind)f->kind) {
    case kind_missing:
        return seen;
    case kind_plain:
    case kind_quoted:
        // Once it is text it stays text, and an empty field says nothing.
        if (seen & seen_text || f->length == 0) return seen;
        return seen | see_number(r, f);
    case kind_doubled:
    case kind_string:
    case kind_escaped:
        return seen | seen_text;
    case kind_number:
        return seen | see_number(r, f);
    case kind_true:
    case kind_false:
        return seen | seen_boolean;
    case kind_nested:
        return seen | seen_nested;
    }
    return seen;
}

enum type type_of(unsigned seen, enum layout layout) {
    switch (seen) {
    case 0: return type_text;
    case seen_integer: case seen_integer | seen_wide: return type_integer;
    case seen_real: case seen_real | seen_integer: return type_real;
    case seen_text: return type_text;
    case seen_boolean: return type_boolean;
    case seen_nested: return type_json;
    }
    return layout == layout_delimited ? type_text : type_any;
}

const char *type_name(enum type type) {
    static const char *const names[] = {"TEXT", "INTEGER", "REAL", "BOOLEAN", "JSON", "ANY"};
    return names[type];
}

const char *declared(enum type type) {
    static const char *const names[] = {"TEXT", "INTEGER", "REAL", "BOOLEAN", "TEXT", ""};
    return names[type];
}

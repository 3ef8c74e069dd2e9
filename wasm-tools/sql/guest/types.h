// What numbers are, and which type a column has, given all of its values.
#ifndef TYPES_H
#define TYPES_H

#include <stdbool.h>
#include <stddef.h>

#include "records.h"

enum number { not_a_number, number_integer, number_real };

// read_number reads a number as JSON writes it: no plus sign, no leading zeros, no spaces. An integer
// that does not fit 64 bits, and a number beyond the range of a double, is none.
enum number read_number(const char *text, size_t length, sqlite3_int64 *integer, double *real);

// What values a column has, as a set.
enum {
    seen_integer = 1,
    seen_wide = 2, // an integer that a double does not hold exactly
    seen_real = 4,
    seen_text = 8,
    seen_boolean = 16,
    seen_nested = 32,
};

enum type { type_text, type_integer, type_real, type_boolean, type_json, type_any };

// see adds a field to what a column has.
unsigned see(unsigned seen, const struct records *r, const struct field *f);

// type_of decides, for text alone (CSV) or for values that have types of their own (JSON).
enum type type_of(unsigned seen, enum layout layout);

// type_name is the name that data_schema shows; declared is what SQLite is told.
const char *type_name(enum type type);
const char *declared(enum type type);

#endif

// Reads JSON from front to back. A function that answers false leaves the reader where
// the text was not what it wanted.
#ifndef READER_H
#define READER_H

#include "buffer.h"

#include <stdbool.h>
#include <stdint.h>

struct reader {
    const char *at, *end;
};

// take skips white space and consumes one wanted byte.
bool take(struct reader *r, char wanted);

// read_string appends the string's text as UTF-8.
bool read_string(struct reader *r, struct buffer *text);

// read_integer reads a number without fraction and exponent that fits in 64 bits.
bool read_integer(struct reader *r, int64_t *number);

// skip_value passes over any value of at most depth lists inside each other.
bool skip_value(struct reader *r, int depth);

// at_end tells whether nothing but white space is left.
bool at_end(struct reader *r);

#endif

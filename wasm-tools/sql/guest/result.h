// The result object, which a program prints once, when it knows whether it succeeded.
#ifndef RESULT_H
#define RESULT_H

#include <stdbool.h>
#include <stddef.h>

#include "sqlite3.h"

enum {
    rows_limit = 500 * 1000, // bytes of JSON that the rows of a result may have together
    cell_limit = 32 * 1024,  // bytes of a text or blob that are shown
};

// fail prints a failed result with this message, in the formats of sqlite3_snprintf, and ends the
// program. It needs no memory.
_Noreturn void fail(const char *format, ...);

// The functions below write JSON. Of a result that gets too long they fail.
void out_raw(const char *json);
void out_integer(sqlite3_int64 number);
void out_string(const char *bytes, size_t length); // what is not UTF-8 becomes U+FFFD
void out_value(sqlite3_value *value);

// utf8_sequence returns how long the UTF-8 sequence at p is, which has at most left bytes, or 0 if there is none: no
// overlong form, no surrogate, nothing beyond U+10FFFF.
size_t utf8_sequence(const unsigned char *p, size_t left);

// out_mark returns the position that out_rewind goes back to.
size_t out_mark(void);
void out_rewind(size_t mark);

// out_finish prints what was written.
void out_finish(void);

#endif

// CSV and its relatives, as RFC 4180 and those who do not follow it write them.
#include <string.h>
#include <wasm_simd128.h>

#include "records.h"

// find returns where the first of two characters is, or end. It reads up to 15 bytes behind the end.
static inline const char *find(const char *p, const char *end, char one, char other) {
    const v128_t ones = wasm_i8x16_splat(one), others = wasm_i8x16_splat(other);
    while (p < end) {
        v128_t bytes = wasm_v128_load(p);
        unsigned found = (unsigned)wasm_i8x16_bitmask(wasm_v128_or(wasm_i8x16_eq(bytes, ones), wasm_i8x16_eq(bytes, others)));
        if (found) {
            p += __builtin_ctz(found);
            return p < end ? p : end;
        }
        p += 16;
    }
    return end;
}

static sqlite3_int64 newlines(const char *p, const char *end) {
    sqlite3_int64 count = 0;
    while ((p = memchr(p, '\n', (size_t)(end - p)))) {
        count++;
        p++;
    }
    return count;
}

// quoted finds the end of a field whose quote opens at p: the separator, newline or end behind it. It
// returns NULL if more has to be read, or if the file ends within.
static const char *quoted(struct records *r, const char *p, const char *end, const char **close, bool *doubled) {
    const char *q = p + 1;
    *doubled = false;
    for (;;) {
        q = find(q, end, '"', '"');
        if (q == end || (q + 1 == end && !r->finished)) return NULL;
        if (q + 1 == end || q[1] != '"') break;
        *doubled = true;
        q += 2;
    }
    *close = q;
    const char *behind = find(q + 1, end, r->separator, '\n');
    return behind == end && !r->finished ? NULL : behind;
}

// at_line_end returns where a field ends that a newline, or the end of the file, is behind.
static const char *without_return(const char *from, const char *to) {
    return to > from && to[-1] == '\r' ? to - 1 : to;
}

enum outcome parse_delimited(struct records *r) {
    const char *p = r->record, *end = r->bytes + r->end;
    sqlite3_int64 below = 1;
    for (int count = 0;;) {
        const char *stop, *close = NULL;
        bool doubled = false, added;
        if (p < end && *p == '"') {
            stop = quoted(r, p, end, &close, &doubled);
            if (!stop) {
                if (!r->finished) return outcome_end;
                sqlite3_snprintf(sizeof r->problem, r->problem, "line %lld: the quote that opens in this record is not closed", r->line);
                return outcome_failed;
            }
            below += newlines(p, close);
        } else {
            stop = find(p, end, r->separator, '\n');
            if (stop == end && !r->finished) return outcome_end;
        }
        bool last = stop == end || *stop == '\n';
        const char *to = last ? without_return(p, stop) : stop;
        if (!close) added = add_field(r, count, p, to, kind_plain);
        else if (to == close + 1 && !doubled) added = add_field(r, count, p + 1, close, kind_quoted);
        else added = add_field(r, count, p + 1, to == close + 1 ? close : to, kind_doubled);
        if (!added) return outcome_failed;
        count++;
        if (last) {
            r->count = count;
            r->lines_below = below;
            r->start = (size_t)(stop == end ? r->end : (size_t)(stop + 1 - r->bytes));
            return outcome_record;
        }
        if (count == column_limit) {
            sqlite3_snprintf(sizeof r->problem, r->problem, "line %lld: the record has more than %d fields", r->line, column_limit);
            return outcome_failed;
        }
        p = stop + 1;
    }
}

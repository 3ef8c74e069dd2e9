#include "records.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { chunk = 256 * 1024, vector = 16 };

bool start_records(struct records *r, int file, const struct form *form) {
    r->layout = form->layout;
    r->separator = form->separator;
    r->file = file;
    r->start = r->end = 0;
    r->finished = false;
    r->line = form->first_line;
    r->lines_below = 0;
    r->count = 0;
    r->problem[0] = 0;
    if (!r->bytes) {
        r->bytes = malloc(chunk + vector);
        r->room = chunk;
    }
    return r->bytes && lseek(file, (off_t)form->start, SEEK_SET) >= 0;
}

void end_records(struct records *r) {
    free(r->bytes);
    free(r->fields);
    r->bytes = NULL;
    r->fields = NULL;
}

// fill reads more behind what is there. It returns false, and says why, if it cannot.
static bool fill(struct records *r) {
    if (r->start > 0) {
        memmove(r->bytes, r->bytes + r->start, r->end - r->start);
        r->end -= r->start;
        r->start = 0;
    }
    if (r->end == r->room) {
        if (r->room >= record_limit) {
            sqlite3_snprintf(sizeof r->problem, r->problem, "line %lld: the record that begins here has more than %d MiB%s", r->line,
                             record_limit / (1024 * 1024), r->layout == layout_delimited ? "; is a quote not closed?" : "");
            return false;
        }
        char *more = realloc(r->bytes, r->room * 2 + vector);
        if (!more) {
            sqlite3_snprintf(sizeof r->problem, r->problem, "line %lld: out of memory: the record that begins here is too long", r->line);
            return false;
        }
        r->bytes = more;
        r->room *= 2;
    }
    ssize_t n = read(r->file, r->bytes + r->end, r->room - r->end);
    if (n < 0) {
        sqlite3_snprintf(sizeof r->problem, r->problem, "line %lld: the file cannot be read", r->line);
        return false;
    }
    if (n == 0) r->finished = true;
    r->end += (size_t)n;
    return true;
}

// pass_blank_lines returns false if more has to be read to tell.
static bool pass_blank_lines(struct records *r) {
    for (;;) {
        const char *p = r->bytes + r->start, *end = r->bytes + r->end;
        if (p < end && *p == '\r' && p + 1 == end && !r->finished) return false;
        if (p < end && *p == '\r' && p + 1 < end && p[1] == '\n') p++;
        if (p == end) return r->finished;
        if (*p != '\n') return true;
        r->start = (size_t)(p + 1 - r->bytes);
        r->line++;
    }
}

enum outcome next_record(struct records *r) {
    r->line += r->lines_below;
    r->lines_below = 0;
    for (;;) {
        if (pass_blank_lines(r)) {
            if (r->start == r->end) return outcome_end;
            r->record = r->bytes + r->start;
            enum outcome got = r->layout == layout_delimited ? parse_delimited(r) : parse_json_line(r);
            if (got != outcome_end) return got;
        }
        if (!fill(r)) return outcome_failed;
    }
}

bool add_field(struct records *r, int index, const char *from, const char *to, enum kind kind) {
    if (index >= r->field_room) {
        int room = index * 2 + 64;
        struct field *more = realloc(r->fields, (size_t)room * sizeof *more);
        if (!more) {
            sqlite3_snprintf(sizeof r->problem, r->problem, "line %lld: out of memory: too many fields", r->line);
            return false;
        }
        r->fields = more;
        r->field_room = room;
    }
    r->fields[index] = (struct field){(unsigned)(from - r->record), (unsigned)(to - from), (unsigned char)kind};
    return true;
}

size_t decoded_length(const struct field *f) { return f->length; }

static size_t put_utf8(char *to, uint32_t c) {
    if (c < 0x80) return to[0] = (char)c, 1;
    if (c < 0x800) return to[0] = (char)(0xC0 | c >> 6), to[1] = (char)(0x80 | (c & 63)), 2;
    if (c < 0x10000) {
        return to[0] = (char)(0xE0 | c >> 12), to[1] = (char)(0x80 | (c >> 6 & 63)), to[2] = (char)(0x80 | (c & 63)), 3;
    }
    to[0] = (char)(0xF0 | c >> 18), to[1] = (char)(0x80 | (c >> 12 & 63));
    to[2] = (char)(0x80 | (c >> 6 & 63)), to[3] = (char)(0x80 | (c & 63));
    return 4;
}

static uint32_t four_digits(const char *p) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        unsigned digit = (unsigned char)p[i];
        value = value << 4 | (digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10);
    }
    return value;
}

// decode_escapes reads what parse_json_line has found to be a string. Halves of surrogate pairs become U+FFFD.
static size_t decode_escapes(const char *p, const char *end, char *to) {
    char *start = to;
    while (p < end) {
        if (*p != '\\') {
            *to++ = *p++;
            continue;
        }
        p += 2;
        switch (p[-1]) {
        case 'b': *to++ = '\b'; break;
        case 'f': *to++ = '\f'; break;
        case 'n': *to++ = '\n'; break;
        case 'r': *to++ = '\r'; break;
        case 't': *to++ = '\t'; break;
        case 'u': {
            uint32_t c = four_digits(p);
            p += 4;
            if (c >= 0xD800 && c < 0xDC00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
                uint32_t low = four_digits(p + 2);
                if (low >= 0xDC00 && low < 0xE000) {
                    c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
                    p += 6;
                }
            }
            if (c >= 0xD800 && c < 0xE000) c = 0xFFFD;
            to += put_utf8(to, c);
            break;
        }
        default: *to++ = p[-1];
        }
    }
    return (size_t)(to - start);
}

static size_t decode_doubled(const char *p, const char *end, char *to) {
    char *start = to;
    while (p < end) {
        if (*p != '"') {
            *to++ = *p++;
            continue;
        }
        if (p + 1 < end && p[1] == '"') {
            *to++ = '"';
            p += 2;
            continue;
        }
        memcpy(to, p + 1, (size_t)(end - p - 1)); // behind the quote that closes
        to += end - p - 1;
        break;
    }
    return (size_t)(to - start);
}

size_t decode(const struct records *r, const struct field *f, char *to) {
    const char *from = r->record + f->offset;
    if (f->kind == kind_escaped) return decode_escapes(from, from + f->length, to);
    if (f->kind == kind_doubled) return decode_doubled(from, from + f->length, to);
    memcpy(to, from, f->length);
    return f->length;
}

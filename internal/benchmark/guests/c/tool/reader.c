#include "reader.h"

#include <string.h>

static void skip_space(struct reader *r) {
    while (r->at < r->end && memchr(" \n\t\r", *r->at, 4)) r->at++;
}

bool at_end(struct reader *r) {
    skip_space(r);
    return r->at == r->end;
}

bool take(struct reader *r, char wanted) {
    if (at_end(r) || *r->at != wanted) return false;
    r->at++;
    return true;
}

static bool read_unit(struct reader *r, uint32_t *unit) {
    *unit = 0;
    if (r->end - r->at < 4) return false;
    for (int i = 0; i < 4; i++) {
        char c = *r->at++;
        if (c >= '0' && c <= '9') *unit = *unit << 4 | (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f') *unit = *unit << 4 | (uint32_t)(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F') *unit = *unit << 4 | (uint32_t)(c - 'A' + 10);
        else return false;
    }
    return true;
}

static void append_utf8(struct buffer *text, uint32_t point) {
    if (point < 0x80) {
        append_byte(text, point);
        return;
    }
    if (point < 0x800) {
        append_byte(text, 0xc0 | point >> 6);
    } else {
        if (point < 0x10000) {
            append_byte(text, 0xe0 | point >> 12);
        } else {
            append_byte(text, 0xf0 | point >> 18);
            append_byte(text, 0x80 | (point >> 12 & 0x3f));
        }
        append_byte(text, 0x80 | (point >> 6 & 0x3f));
    }
    append_byte(text, 0x80 | (point & 0x3f));
}

// read_code_point reads what follows \u, and the second half of a surrogate pair.
static bool read_code_point(struct reader *r, struct buffer *text) {
    uint32_t point, low;
    if (!read_unit(r, &point) || (point & 0xfc00) == 0xdc00) return false;
    if ((point & 0xfc00) == 0xd800) {
        if (r->end - r->at < 2 || *r->at++ != '\\' || *r->at++ != 'u') return false;
        if (!read_unit(r, &low) || (low & 0xfc00) != 0xdc00) return false;
        point = 0x10000 + ((point & 0x3ff) << 10 | (low & 0x3ff));
    }
    append_utf8(text, point);
    return true;
}

static bool read_escape(struct reader *r, struct buffer *text) {
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    if (r->at == r->end) return false;
    char letter = *r->at++;
    if (letter == 'u') return read_code_point(r, text);
    const char *found = memchr(letters, letter, sizeof letters - 1);
    if (!found) return false;
    append_byte(text, (unsigned char)meant[found - letters]);
    return true;
}

bool read_string(struct reader *r, struct buffer *text) {
    if (!take(r, '"')) return false;
    while (r->at < r->end) {
        const char *start = r->at;
        while (r->at < r->end && *r->at != '"' && *r->at != '\\' && (unsigned char)*r->at >= ' ') r->at++;
        append(text, start, (size_t)(r->at - start));
        if (r->at == r->end || (unsigned char)*r->at < ' ') return false;
        if (*r->at++ == '"') return true;
        if (!read_escape(r, text)) return false;
    }
    return false;
}

bool read_integer(struct reader *r, int64_t *number) {
    bool negative = take(r, '-');
    if (!negative && at_end(r)) return false;
    const char *start = r->at;
    int64_t value = 0; // counted below zero, where the smallest number has room
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        if (__builtin_mul_overflow(value, 10, &value)) return false;
        if (__builtin_sub_overflow(value, *r->at - '0', &value)) return false;
    }
    if (r->at == start || (r->at - start > 1 && *start == '0')) return false;
    if (!negative && __builtin_sub_overflow(0, value, &value)) return false;
    *number = value;
    return true;
}

static bool skip_word(struct reader *r, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0) return false;
    r->at += length;
    return true;
}

static size_t skip_digits(struct reader *r) {
    const char *start = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9') r->at++;
    return (size_t)(r->at - start);
}

static bool skip_number(struct reader *r) {
    if (*r->at == '-') r->at++;
    if (skip_digits(r) == 0) return false;
    if (r->at < r->end && *r->at == '.') {
        r->at++;
        if (skip_digits(r) == 0) return false;
    }
    if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
        r->at++;
        if (r->at < r->end && (*r->at == '+' || *r->at == '-')) r->at++;
        if (skip_digits(r) == 0) return false;
    }
    return true;
}

static bool skip_string(struct reader *r) {
    if (!take(r, '"')) return false;
    for (; r->at < r->end; r->at++) {
        if (*r->at == '"') {
            r->at++;
            return true;
        }
        if (*r->at == '\\' && ++r->at == r->end) return false;
    }
    return false;
}

static bool skip_list(struct reader *r, char closing, int depth) {
    r->at++;
    if (take(r, closing)) return true;
    do {
        if (closing == '}' && !(skip_string(r) && take(r, ':'))) return false;
        if (!skip_value(r, depth - 1)) return false;
    } while (take(r, ','));
    return take(r, closing);
}

bool skip_value(struct reader *r, int depth) {
    if (depth == 0 || at_end(r)) return false;
    switch (*r->at) {
    case '{': return skip_list(r, '}', depth);
    case '[': return skip_list(r, ']', depth);
    case '"': return skip_string(r);
    case 'n': return skip_word(r, "null");
    case 't': return skip_word(r, "true");
    case 'f': return skip_word(r, "false");
    }
    return skip_number(r);
}

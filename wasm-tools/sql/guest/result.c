#include "result.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Static, so that running out of memory can be told.
static char out[1024 * 1024];
static size_t length;

static void print_and_exit(void) {
    size_t done = fwrite(out, 1, length, stdout);
    exit(done == length && fflush(stdout) == 0 ? 0 : 1);
}

_Noreturn void fail(const char *format, ...) {
    static char message[4096];
    va_list arguments;
    va_start(arguments, format);
    sqlite3_vsnprintf(sizeof message, message, format, arguments);
    va_end(arguments);
    length = 0;
    out_raw("{\"success\":false,\"error\":");
    out_string(message, strlen(message));
    out_raw("}");
    print_and_exit();
    abort();
}

static void put(const char *bytes, size_t count) {
    if (count > sizeof out - length) fail("the result is too long; select fewer columns, or give them shorter names");
    memcpy(out + length, bytes, count);
    length += count;
}

void out_raw(const char *json) { put(json, strlen(json)); }

void out_integer(sqlite3_int64 number) {
    char digits[24];
    sqlite3_snprintf(sizeof digits, digits, "%lld", number);
    out_raw(digits);
}

static bool is_tail(unsigned char byte) { return (byte & 0xC0) == 0x80; }

size_t utf8_sequence(const unsigned char *p, size_t left) {
    if (p[0] < 0x80) return 1;
    if (p[0] >= 0xC2 && p[0] <= 0xDF) return left >= 2 && is_tail(p[1]) ? 2 : 0;
    if (p[0] >= 0xE0 && p[0] <= 0xEF) {
        unsigned char low = p[0] == 0xE0 ? 0xA0 : 0x80, high = p[0] == 0xED ? 0x9F : 0xBF;
        return left >= 3 && p[1] >= low && p[1] <= high && is_tail(p[2]) ? 3 : 0;
    }
    if (p[0] >= 0xF0 && p[0] <= 0xF4) {
        unsigned char low = p[0] == 0xF0 ? 0x90 : 0x80, high = p[0] == 0xF4 ? 0x8F : 0xBF;
        return left >= 4 && p[1] >= low && p[1] <= high && is_tail(p[2]) && is_tail(p[3]) ? 4 : 0;
    }
    return 0;
}

static void put_character(const unsigned char *p, size_t count) {
    static const char *const short_forms[] = {['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n", ['\f'] = "\\f", ['\r'] = "\\r"};
    if (count == 1 && (*p == '"' || *p == '\\')) {
        char escaped[] = {'\\', (char)*p};
        put(escaped, 2);
    } else if (count == 1 && (*p < 0x20 || *p == 0x7F)) {
        char escaped[8];
        if (*p < sizeof short_forms / sizeof *short_forms && short_forms[*p]) {
            out_raw(short_forms[*p]);
            return;
        }
        sqlite3_snprintf(sizeof escaped, escaped, "\\u%04x", *p);
        out_raw(escaped);
    } else {
        put((const char *)p, count);
    }
}

// write_string writes a string, and returns whether all of it is UTF-8.
static bool write_string(const char *bytes, size_t count) {
    const unsigned char *p = (const unsigned char *)bytes, *end = p + count;
    bool valid = true;
    out_raw("\"");
    while (p < end) {
        size_t one = utf8_sequence(p, (size_t)(end - p));
        if (one) {
            put_character(p, one);
            p += one;
        } else {
            valid = false;
            out_raw("\xEF\xBF\xBD");
            p++;
        }
    }
    out_raw("\"");
    return valid;
}

void out_string(const char *bytes, size_t count) { write_string(bytes, count); }

static bool is_utf8(const char *bytes, size_t count) {
    const unsigned char *p = (const unsigned char *)bytes, *end = p + count;
    while (p < end) {
        size_t one = utf8_sequence(p, (size_t)(end - p));
        if (!one) return false;
        p += one;
    }
    return true;
}

static void write_real(double number) {
    char digits[40];
    if (isinf(number)) {
        out_raw(number > 0 ? "{\"real\":\"Infinity\"}" : "{\"real\":\"-Infinity\"}");
        return;
    }
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, number);
        if (strtod(digits, NULL) == number) break;
    }
    out_raw(digits);
    if (!strpbrk(digits, ".e")) out_raw(".0");
}

static void write_text(const char *text, size_t count) {
    size_t shown = count;
    if (shown > cell_limit) {
        shown = cell_limit;
        while (shown > cell_limit - 4 && is_tail((unsigned char)text[shown])) shown--;
    }
    bool valid = is_utf8(text, shown);
    if (valid && shown == count) {
        write_string(text, count);
        return;
    }
    out_raw("{\"text\":");
    write_string(text, shown);
    out_raw(",\"bytes\":");
    out_integer((sqlite3_int64)count);
    if (!valid) out_raw(",\"invalid_utf8\":true");
    out_raw("}");
}

static void write_blob(const unsigned char *bytes, size_t count) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t shown = count < cell_limit ? count : cell_limit;
    out_raw("{\"blob\":\"");
    for (size_t i = 0; i < shown; i += 3) {
        uint32_t group = (uint32_t)bytes[i] << 16;
        if (i + 1 < shown) group |= (uint32_t)bytes[i + 1] << 8;
        if (i + 2 < shown) group |= bytes[i + 2];
        char four[] = {digits[group >> 18], digits[group >> 12 & 63], digits[group >> 6 & 63], digits[group & 63]};
        if (i + 1 >= shown) four[2] = '=';
        if (i + 2 >= shown) four[3] = '=';
        put(four, 4);
    }
    out_raw("\",\"bytes\":");
    out_integer((sqlite3_int64)count);
    out_raw("}");
}

void out_value(sqlite3_value *value) {
    switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
        out_integer(sqlite3_value_int64(value));
        return;
    case SQLITE_FLOAT:
        write_real(sqlite3_value_double(value));
        return;
    case SQLITE_TEXT: {
        const char *text = (const char *)sqlite3_value_text(value);
        if (!text) break;
        write_text(text, (size_t)sqlite3_value_bytes(value));
        return;
    }
    case SQLITE_BLOB: {
        const unsigned char *bytes = sqlite3_value_blob(value);
        size_t count = (size_t)sqlite3_value_bytes(value);
        if (!bytes && count) break;
        write_blob(bytes, count);
        return;
    }
    default:
        out_raw("null");
        return;
    }
    fail("out of memory: a text or blob of the result does not fit; select a part of it with substr()");
}

size_t out_mark(void) { return length; }

void out_rewind(size_t mark) { length = mark; }

void out_finish(void) { print_and_exit(); }

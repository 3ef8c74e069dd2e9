#include "handle.h"

#include "reader.h"

#include <stdlib.h>
#include <string.h>

enum { depth_limit = 100 };

// How many calls this instance served. It is memory, so that state which leaks from call
// to call is seen in the answer.
static uint64_t calls;

struct input {
    struct buffer text;
    uint64_t sum; // wraps around, as the other languages' sums do
};

static bool read_numbers(struct reader *r, uint64_t *sum) {
    *sum = 0;
    if (!take(r, '[')) return false;
    if (take(r, ']')) return true;
    do {
        int64_t number;
        if (!read_integer(r, &number)) return false;
        *sum += (uint64_t)number;
    } while (take(r, ','));
    return take(r, ']');
}

static bool is(const struct buffer *name, const char *wanted) {
    return name->length == strlen(wanted) && memcmp(name->bytes, wanted, name->length) == 0;
}

static bool read_member(struct reader *r, struct buffer *name, struct input *in) {
    name->length = 0;
    if (!read_string(r, name) || !take(r, ':')) return false;
    if (is(name, "text")) {
        in->text.length = 0;
        return read_string(r, &in->text);
    }
    if (is(name, "nums")) return read_numbers(r, &in->sum);
    return skip_value(r, depth_limit);
}

static bool read_input(struct reader *r, struct input *in) {
    struct buffer name = {0};
    bool ok = take(r, '{');
    if (ok && !take(r, '}')) {
        do ok = read_member(r, &name, in);
        while (ok && take(r, ','));
        ok = ok && take(r, '}');
    }
    free(name.bytes);
    return ok && at_end(r);
}

static void append_integer(struct buffer *out, int64_t number) {
    char digits[20], *first = digits + sizeof digits;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    do *--first = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0) append_byte(out, '-');
    append(out, first, (size_t)(digits + sizeof digits - first));
}

// append_upper writes a JSON string in capital letters. Letters beyond ASCII stay as they are.
static void append_upper(struct buffer *out, const struct buffer *text) {
    static const char hex[] = "0123456789abcdef";
    append_byte(out, '"');
    for (size_t i = 0; i < text->length; i++) {
        unsigned char c = (unsigned char)text->bytes[i];
        if (c >= 'a' && c <= 'z') c -= 'a' - 'A';
        if (c == '"' || c == '\\') append_byte(out, '\\');
        if (c >= ' ') {
            append_byte(out, c);
            continue;
        }
        append_text(out, "\\u00");
        append_byte(out, (unsigned char)hex[c >> 4]);
        append_byte(out, (unsigned char)hex[c & 15]);
    }
    append_byte(out, '"');
}

bool handle(const char *input, size_t length, struct buffer *output) {
    struct reader r = {.at = input, .end = input + length};
    struct input in = {0};
    bool ok = read_input(&r, &in);
    if (ok) {
        calls++;
        append_text(output, "{\"upper\":");
        append_upper(output, &in.text);
        append_text(output, ",\"sum\":");
        append_integer(output, (int64_t)in.sum);
        append_text(output, ",\"calls\":");
        append_integer(output, (int64_t)calls);
        append_byte(output, '}');
    }
    free(in.text.bytes);
    return ok;
}

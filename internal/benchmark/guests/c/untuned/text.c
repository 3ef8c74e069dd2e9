#include "text.h"

void write_bytes(struct text *t, const void *bytes, size_t length) {
    if (length == 0) return; // memcpy wants a pointer even then
    if (t->room - t->length < length) {
        t->room = 2 * t->room + length;
        t->bytes = resize(t->bytes, t->room);
    }
    memcpy(t->bytes + t->length, bytes, length);
    t->length += length;
}

void write_string(struct text *t, const char *string) { write_bytes(t, string, strlen(string)); }

void write_number(struct text *t, uint32_t number) {
    char digits[10], *first = digits + sizeof digits;
    do *--first = (char)('0' + number % 10);
    while (number /= 10);
    write_bytes(t, first, (size_t)(digits + sizeof digits - first));
}

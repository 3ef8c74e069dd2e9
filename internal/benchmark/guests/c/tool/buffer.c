#include "buffer.h"

#include <stdlib.h>
#include <string.h>

void reserve(struct buffer *b, size_t more) {
    if (b->room - b->length >= more) return;
    size_t room = 2 * b->room + more;
    char *bytes = realloc(b->bytes, room);
    if (!bytes) abort();
    b->bytes = bytes;
    b->room = room;
}

void append(struct buffer *b, const void *bytes, size_t length) {
    reserve(b, length);
    if (length) memcpy(b->bytes + b->length, bytes, length);
    b->length += length;
}

void append_byte(struct buffer *b, unsigned byte) {
    char c = (char)byte;
    append(b, &c, 1);
}

void append_text(struct buffer *b, const char *text) { append(b, text, strlen(text)); }

// Bytes that grow.
#ifndef BUFFER_H
#define BUFFER_H

#include <stddef.h>

struct buffer {
    char *bytes;
    size_t length, room;
};

// reserve makes room for more bytes behind the length. It ends the program when memory is short.
void reserve(struct buffer *b, size_t more);
void append(struct buffer *b, const void *bytes, size_t length);
void append_byte(struct buffer *b, unsigned byte);
void append_text(struct buffer *b, const char *text);

#endif

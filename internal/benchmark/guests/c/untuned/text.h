// A text that grows.
#ifndef TEXT_H
#define TEXT_H

#include "../kernels/kernels.h"

struct text {
    uint8_t *bytes;
    size_t length, room;
};

static inline void write_byte(struct text *t, uint8_t byte) {
    if (t->length == t->room) {
        t->room = 2 * t->room + 16;
        t->bytes = resize(t->bytes, t->room);
    }
    t->bytes[t->length++] = byte;
}

void write_bytes(struct text *t, const void *bytes, size_t length);
void write_string(struct text *t, const char *string);
void write_number(struct text *t, uint32_t number);

#endif

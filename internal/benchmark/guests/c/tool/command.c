// The tool as a WASI command: arguments on stdin, the result on stdout.
#include "handle.h"

#include <stdio.h>
#include <unistd.h>

static bool read_all(struct buffer *b) {
    for (;;) {
        reserve(b, 4096);
        ssize_t got = read(STDIN_FILENO, b->bytes + b->length, b->room - b->length);
        if (got <= 0) return got == 0;
        b->length += (size_t)got;
    }
}

static bool write_all(const struct buffer *b) {
    for (size_t done = 0; done < b->length;) {
        ssize_t put = write(STDOUT_FILENO, b->bytes + done, b->length - done);
        if (put < 0) return false;
        done += (size_t)put;
    }
    return true;
}

int main(void) {
    struct buffer input = {0}, output = {0};
    if (!read_all(&input)) {
        perror("read");
        return 1;
    }
    if (!handle(input.bytes, input.length, &output)) {
        fputs("the input is no object of text and nums\n", stderr);
        return 1;
    }
    if (!write_all(&output)) {
        perror("write");
        return 1;
    }
    return 0;
}

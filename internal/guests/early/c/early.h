#pragma once

#include <stddef.h>

// TEXT_SIZE is the room in bytes of an act's text, with its NUL.
#define TEXT_SIZE 256

// An act is what the guest does before it reads its input. The text tells what came of it.
// After, which may be missing, is done once the input is read, and may tell something else.
struct act {
    const char *name;
    void (*before)(char *text);
    void (*after)(char *text);
};

// Acts with the C library alone, as in the other languages, and with calls of WASI that the
// library does not make. Each list ends with an act without a name.
extern const struct act library_acts[];
extern const struct act raw_acts[];

// read_file tells the content of the tenant's file, or why there is none.
void read_file(char *text);

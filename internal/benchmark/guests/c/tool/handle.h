// The tool of the benchmarks, apart from how its input and output travel.
#ifndef HANDLE_H
#define HANDLE_H

#include "buffer.h"

#include <stdbool.h>

// handle answers one call: it appends the answer to output, or returns false because the
// input is not the JSON object that it wants.
bool handle(const char *input, size_t length, struct buffer *output);

#endif

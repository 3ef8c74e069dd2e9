// The tool as an Extism plug-in, its calling convention written out by hand.
#include "handle.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HOST(name) __attribute__((import_module("extism:host/env"), import_name(#name)))

HOST(input_length) uint64_t input_length(void);
HOST(input_load_u8) uint32_t input_load_u8(uint64_t offset);
HOST(input_load_u64) uint64_t input_load_u64(uint64_t offset);
HOST(alloc) uint64_t host_alloc(uint64_t length);
HOST(store_u8) void store_u8(uint64_t offset, uint32_t value);
HOST(store_u64) void store_u64(uint64_t offset, uint64_t value);
HOST(output_set) void output_set(uint64_t offset, uint64_t length);
HOST(error_set) void error_set(uint64_t offset);

static void read_input(struct buffer *b) {
    uint64_t length = input_length(), offset = 0;
    reserve(b, length);
    for (; length - offset >= 8; offset += 8) {
        uint64_t word = input_load_u64(offset);
        memcpy(b->bytes + offset, &word, sizeof word);
    }
    for (; offset < length; offset++) b->bytes[offset] = (char)input_load_u8(offset);
    b->length = length;
}

// store copies bytes to the host's memory and returns where they are.
static uint64_t store(const char *bytes, size_t length) {
    uint64_t block = host_alloc(length);
    size_t offset = 0;
    for (; length - offset >= 8; offset += 8) {
        uint64_t word;
        memcpy(&word, bytes + offset, sizeof word);
        store_u64(block + offset, word);
    }
    for (; offset < length; offset++) store_u8(block + offset, (uint8_t)bytes[offset]);
    return block;
}

// call answers one call: 0, or 1 with an error set.
__attribute__((export_name("call"))) int32_t call(void) {
    struct buffer input = {0}, output = {0};
    read_input(&input);
    bool ok = handle(input.bytes, input.length, &output);
    if (ok) {
        output_set(store(output.bytes, output.length), output.length);
    } else {
        const char *message = "the input is no object of text and nums";
        error_set(store(message, strlen(message)));
    }
    free(input.bytes);
    free(output.bytes);
    return ok ? 0 : 1;
}

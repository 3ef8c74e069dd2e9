// A plug-in that does with its host what its input says, and tells what came of it. The input is a sequence
// of steps: a letter, two hexadecimal digits for the number of a block, four for a value.
#include "host.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

HOST(input_offset) uint64_t input_offset(void);
HOST(http_headers) uint64_t http_headers(void);
HOST(get_log_level) int32_t get_log_level(void);

enum { STEP = 7, BLOCKS = 256 };

static struct {
    uint64_t at, length;
    bool live;
} blocks[BLOCKS];

static char told[1 << 20];
static uint64_t told_length;

static void tell(char step, uint64_t value) {
    if (told_length + 32 < sizeof told)
        told_length += (uint64_t)snprintf(told + told_length, 32, "%c%llx ", step, (unsigned long long)value);
}

static uint64_t digits(uint64_t from, int count) {
    uint64_t value = 0;
    for (int i = 0; i < count; i++) {
        uint32_t digit = input_load_u8(from + (uint64_t)i);
        value = value << 4 | (digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    return value;
}

// pattern fills a block, so that one that overlaps another shows.
static void pattern(uint64_t at, uint64_t length, uint64_t value) {
    uint64_t i = 0;
    for (; length - i >= 8; i += 8) store_u64(at + i, value * 0x9e3779b97f4a7c15 + i);
    for (; i < length; i++) store_u8(at + i, (uint8_t)(value + i));
}

static uint64_t sum(uint64_t at, uint64_t length) {
    uint64_t total = length, i = 0;
    for (; length - i >= 8; i += 8) total = total * 31 + load_u64(at + i);
    for (; i < length; i++) total = total * 31 + load_u8(at + i);
    return total;
}

static uint64_t name_of(uint64_t number) {
    uint64_t block = block_alloc(3);
    store_u8(block, 'v');
    store_u8(block + 1, (uint8_t)('a' + number % 26));
    store_u8(block + 2, (uint8_t)('a' + number / 26));
    return block;
}

static void step(uint64_t from) {
    char what = (char)input_load_u8(from);
    uint64_t number = digits(from + 1, 2), value = digits(from + 3, 4), at = blocks[number].at, length = blocks[number].length;
    bool live = blocks[number].live;
    switch (what) {
    case 'a': // a new block, which forgets the one of its number
        if (value == 0) return;
        blocks[number].at = block_alloc(value), blocks[number].length = value, blocks[number].live = true;
        pattern(blocks[number].at, value, number + value);
        return;
    case 'f': // once, or twice
        if (!live) return; // another block may be there by now
        block_free(at);
        if (value % 2 == 1) block_free(at);
        blocks[number].live = false;
        return;
    case 'l':
        if (live) tell(what, block_length(at));
        return;
    case 's':
        if (live) store_u8(at + value % length, (uint8_t)value);
        return;
    case 'r':
        if (live) tell(what, load_u8(at + value % length));
        return;
    case 'S':
        if (live && length >= 8) store_u64(at + value % (length - 7), value << 48 | value);
        return;
    case 'R':
        if (live && length >= 8) tell(what, load_u64(at + value % (length - 7)));
        return;
    case 'h':
        if (live) tell(what, sum(at, length));
        return;
    case 'v': { // the host frees both blocks; all variables together stay below what it keeps
        uint64_t name = name_of(number), block = block_alloc(value % 2048 + 1);
        pattern(block, value % 2048 + 1, value);
        var_set(name, block);
        return;
    }
    case 'd':
        var_set(name_of(number), 0);
        return;
    case 'g': {
        uint64_t block = var_get(name_of(number)), got = block == 0 ? 0 : block_length(block);
        tell(what, block == 0 ? 0 : sum(block, got));
        block_free(block);
        return;
    }
    case 'c': {
        uint64_t block = config_get(name_of(number)), got = block == 0 ? 0 : block_length(block);
        tell(what, block == 0 ? 0 : sum(block, got));
        return;
    }
    case 'i':
        tell(what, input_load_u64(value % (input_length() - 7)));
        tell(what, block_length(input_offset()));
        return;
    case 'n':
        tell(what, (uint64_t)http_status_code());
        tell(what, (uint64_t)get_log_level());
        tell(what, block_length(0));
        return;
    case 'w':
        log_warn(name_of(number));
        return;
    }
    tell('?', (uint64_t)what);
}

__attribute__((export_name("run"))) int32_t run(void) {
    uint64_t length = input_length();
    for (uint64_t at = 0; at + STEP <= length; at += STEP) step(at);
    for (uint64_t number = 0; number < BLOCKS; number++)
        if (blocks[number].live) tell('=', sum(blocks[number].at, blocks[number].length));
    uint64_t output = block_alloc(told_length);
    for (uint64_t i = 0; i < told_length; i++) store_u8(output + i, (uint8_t)told[i]);
    output_set(output, told_length);
    return 0;
}

// A plug-in that means harm: each export abuses what its host offers. It says what it found in its output,
// if it comes that far.
#include "host.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

HOST(input_offset) uint64_t input_offset(void);
HOST(input_set) void input_set(uint64_t block, uint64_t length);
HOST(length_unsafe) uint64_t block_length_unsafe(uint64_t block);
HOST(memory_bytes) uint64_t memory_bytes(void);
HOST(reset) void reset(void);

#define ATTACK(name) __attribute__((export_name(#name))) int32_t name(void)

static uint64_t store(const char *bytes, uint64_t length) {
    uint64_t block = block_alloc(length);
    for (uint64_t at = 0; at < length; at++) store_u8(block + at, (uint8_t)bytes[at]);
    return block;
}

static uint64_t text(const char *t) { return store(t, strlen(t)); }

__attribute__((format(printf, 1, 2))) static int32_t say(const char *format, ...) {
    static char said[4096];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(said, sizeof said, format, values);
    va_end(values);
    output_set(store(said, (uint64_t)length), (uint64_t)length);
    return 0;
}

// harmless counts its calls and returns its input: what the call after an attack should find.
static uint64_t calls;

ATTACK(harmless) {
    uint64_t length = input_length(), block = var_get(text("left"));
    char *input = malloc(length + 1);
    for (uint64_t at = 0; at < length; at++) input[at] = (char)input_load_u8(at);
    input[length] = 0;
    return say("%llu %s %s", (unsigned long long)++calls, block == 0 && http_status_code() == 0 ? "clean" : "stained", input);
}

// Offsets of other blocks, and of none.

// interior asks for blocks at every offset around a block but its own.
ATTACK(interior) {
    uint64_t block = store("0123456789abcdef0123456789abcdef", 32), found = 0;
    for (uint64_t at = block - 64; at < block + 64; at++) found += at != block && at != input_offset() && block_length(at) != 0;
    return say("%llu blocks", (unsigned long long)found);
}

ATTACK(length_of_nothing) {
    uint64_t sum = block_length(0) + block_length(UINT64_MAX) + block_length(1ull << 63) + block_length(1ull << 32) + block_length(UINT32_MAX) +
                   block_length((1ull << 32) + input_offset());
    return say("%llu bytes", (unsigned long long)sum);
}

ATTACK(unsafe_length_of_nothing) {
    return say("%llu bytes", (unsigned long long)(block_length_unsafe(UINT32_MAX) + block_length_unsafe(UINT64_MAX - 3)));
}

ATTACK(load_beyond) { return say("%u", load_u8(memory_bytes())); }
ATTACK(load_word_across_the_end) { return say("%llu", (unsigned long long)load_u64(memory_bytes() - 4)); }
ATTACK(load_far_beyond) { return say("%llu", (unsigned long long)load_u64(1ull << 63)); }
ATTACK(load_at_the_last_address) { return say("%llu", (unsigned long long)load_u64(UINT64_MAX)); }
ATTACK(load_wrapped_address) { // its lower half is a block
    return say("%u", load_u8((1ull << 32) + store("mine", 4)));
}
ATTACK(store_beyond) {
    store_u8(memory_bytes(), 1);
    return say("stored");
}
ATTACK(store_word_across_the_end) {
    store_u64(memory_bytes() - 4, UINT64_MAX);
    return say("stored");
}
ATTACK(store_far_beyond) {
    store_u64(1ull << 63, UINT64_MAX);
    return say("stored");
}
ATTACK(store_wrapped_address) {
    uint64_t block = store("mine", 4);
    store_u8((1ull << 32) + block, 'M');
    return say("stored %c", (char)load_u8(block));
}

ATTACK(input_beyond) {
    uint64_t found = 0;
    for (uint64_t at = input_length(); at < input_length() + 4096; at++) found += input_load_u8(at);
    return say("%llu", (unsigned long long)found);
}
ATTACK(input_before) { return say("%llu", (unsigned long long)(input_load_u64(UINT64_MAX - 7) + input_load_u8(UINT64_MAX))); }
ATTACK(input_elsewhere) {
    input_set(1ull << 40, 1ull << 40);
    return say("%llu %u", (unsigned long long)input_length(), input_load_u8(1ull << 39));
}

// Lengths that lie.

ATTACK(output_longer_than_its_block) {
    output_set(store("short", 5), 1ull << 30);
    return 0;
}
ATTACK(output_of_all_memory) {
    output_set(0, UINT64_MAX);
    return 0;
}
ATTACK(output_outside) {
    output_set(1ull << 40, 16);
    return 0;
}
ATTACK(output_wraps) {
    output_set(UINT64_MAX - 8, 64);
    return 0;
}
ATTACK(output_at_the_end) {
    output_set(memory_bytes() - 1, 64);
    return 0;
}
ATTACK(output_of_a_freed_block) {
    uint64_t block = store("freed", 5);
    block_free(block);
    output_set(block, 5);
    return 0;
}
ATTACK(output_then_reset) {
    say("gone");
    reset();
    return 0;
}
ATTACK(error_outside) {
    error_set(1ull << 40);
    return 1;
}
ATTACK(error_inside_a_block) {
    error_set(text("an error") + 3);
    return 1;
}
ATTACK(error_of_a_freed_block) {
    uint64_t block = text("an error");
    block_free(block);
    error_set(block);
    return 1;
}

// Freeing.

ATTACK(free_twice) {
    uint64_t block = store("0123456789abcdef", 16), other;
    block_free(block);
    block_free(block);
    block = store("first", 16), other = store("second", 16);
    return say("%s", block == other ? "one block twice" : "two blocks");
}
ATTACK(free_what_is_no_block) {
    uint64_t block = store("0123456789abcdef", 16);
    block_free(0);
    block_free(block + 1);
    block_free(1ull << 63);
    block_free(UINT64_MAX);
    block_free((1ull << 32) + block);
    return say("%llu", (unsigned long long)block_length(block));
}
ATTACK(free_the_input) {
    uint64_t length = input_length();
    block_free(input_offset());
    for (int i = 0; i < 100; i++) store("another block in its place", 26);
    for (uint64_t at = 0; at < length; at++) input_load_u8(at);
    return say("%llu", (unsigned long long)length);
}
ATTACK(store_into_a_freed_block) {
    uint64_t block = store("0123456789abcdef", 16);
    store("a block behind", 14);
    block_free(block);
    store_u64(block, UINT64_MAX);
    store_u64(block + 8, UINT64_MAX);
    uint64_t next = store("0123456789abcdef", 16);
    return say("%c", (char)load_u8(next + 10));
}

// overwrite fills all memory of the host's that it may write to, and goes on using it.
ATTACK(overwrite) {
    uint64_t first = store("first", 5), end = first + 4096;
    for (int i = 0; i < 64; i++) store("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 64);
    for (uint64_t at = first > 65536 ? first - 65536 : 0; at < end; at += 8) store_u64(at, 0x0101010101010101);
    for (int i = 0; i < 1000; i++) {
        uint64_t block = block_alloc((uint64_t)i * 37);
        if (i % 3 == 0) block_free(block);
        block_free(first + (uint64_t)i);
    }
    return say("went on");
}

// overwrite_with tries all words as what the host keeps about its blocks.
ATTACK(overwrite_headers) {
    for (uint64_t word = 0; word < 64; word++) {
        uint64_t block = store("0123456789abcdef", 16), after = store("0123456789abcdef", 16);
        for (uint64_t at = block + 16; at + 8 <= after; at += 8) store_u64(at, word < 32 ? 1ull << (2 * word) : UINT64_MAX >> (2 * (word - 32)));
        block_free(after);
        block_free(block);
        block_free(block_alloc(16 << word % 8));
        block_length(after);
    }
    return say("went on");
}

// Sizes and numbers.

static int32_t allocated(uint64_t length) {
    uint64_t block = block_alloc(length);
    return say("%s", block == 0 ? "refused" : "allocated");
}

ATTACK(allocate_all) { return allocated(UINT64_MAX); }
ATTACK(allocate_half) { return allocated(1ull << 63); }
ATTACK(allocate_4_gib) { return allocated(1ull << 32); }
ATTACK(allocate_nearly_4_gib) { return allocated(UINT32_MAX - 64); }
ATTACK(allocate_1_gib) { return allocated(1ull << 30); }

ATTACK(million_blocks) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < 1000000; i++) sum += block_alloc(1) != 0;
    return say("%llu", (unsigned long long)sum);
}
ATTACK(million_blocks_freed) {
    uint64_t most = 0;
    for (uint64_t i = 0; i < 1000000; i++) {
        uint64_t block = block_alloc(1 + i % 100);
        if (block > most) most = block;
        block_free(block);
    }
    return say("%s", most < 1 << 24 ? "reused" : "grown");
}
ATTACK(memory_until_refused) {
    for (int i = 0; i < 1 << 16; i++)
        if (block_alloc(1 << 16) == 0) return say("refused after %d", i);
    return say("4 GiB");
}
// both_memories takes half of what it may have in its own memory and the rest from the host.
ATTACK(both_memories) {
    char *own = malloc(40 << 20);
    if (own == NULL) return say("refused its own");
    memset(own, 1, 40 << 20);
    uint64_t block = block_alloc(40 << 20);
    if (block == 0) return say("refused the host's");
    for (uint64_t at = 0; at < 40 << 20; at += 4096) store_u8(block + at, (uint8_t)own[at]);
    return say("80 MiB");
}

// Variables and configuration.

ATTACK(variable_is_its_own_name) {
    uint64_t block = text("self");
    var_set(block, block);
    return say("%llu bytes", (unsigned long long)block_length(var_get(text("self"))));
}
ATTACK(variable_inside_its_name) {
    uint64_t block = text("a name that is long");
    var_set(block, block + 4);
    return say("set");
}
ATTACK(variable_from_nowhere) {
    var_set(1ull << 40, 1ull << 41);
    return say("set");
}
ATTACK(variable_of_a_freed_name) {
    uint64_t block = text("left");
    block_free(block);
    var_set(block, block);
    return say("set");
}
ATTACK(read_a_variable_from_nowhere) { return say("%llu", (unsigned long long)var_get(UINT64_MAX)); }
ATTACK(read_a_configuration_from_nowhere) { return say("%llu", (unsigned long long)config_get(UINT64_MAX)); }
ATTACK(leave_a_variable) {
    var_set(text("left"), text("behind"));
    return say("set");
}
// variables_without_end fills the host with variables of 64 KiB.
ATTACK(variables_without_end) {
    char name[32];
    for (int i = 0; i < 1 << 16; i++) {
        snprintf(name, sizeof name, "variable %d", i);
        var_set(text(name), block_alloc(1 << 16));
    }
    return say("4 GiB");
}
ATTACK(many_variables) {
    char name[32];
    for (int i = 0; i < 1000000; i++) {
        snprintf(name, sizeof name, "%d", i);
        var_set(text(name), text("x"));
    }
    return say("a million");
}
ATTACK(grow_a_variable_by_reading) {
    var_set(text("v"), block_alloc(512 << 10));
    for (int i = 0; i < 100000; i++)
        if (var_get(text("v")) == 0) return say("refused after %d", i);
    return say("50 GiB");
}

// Requests.

ATTACK(request_from_nowhere) { return say("%llu", (unsigned long long)http_request(1ull << 40, 0)); }
ATTACK(request_that_is_no_json) { return say("%llu", (unsigned long long)http_request(text("{\"url\": \"https://"), 0)); }
ATTACK(request_with_a_body_from_nowhere) {
    return say("%llu", (unsigned long long)http_request(text("{\"url\":\"https://api.example.com/\",\"method\":\"POST\"}"), 1ull << 40));
}
ATTACK(request_of_a_number) { return say("%llu", (unsigned long long)http_request(text("{\"url\": 5, \"headers\": [1]}"), 0)); }
ATTACK(request_to_a_file) { return say("%llu", (unsigned long long)http_request(text("{\"url\":\"file:///etc/passwd\"}"), 0)); }
ATTACK(request_to_what_is_not_granted) { return say("%llu", (unsigned long long)http_request(text("{\"url\":\"https://169.254.169.254/latest\"}"), 0)); }
ATTACK(leave_a_status) {
    http_request(text("{\"url\":\"https://api.example.com/missing\"}"), 0);
    return say("%d", (int)http_status_code());
}
ATTACK(request_redirected) {
    uint64_t block = http_request(text("{\"url\":\"https://api.example.com/elsewhere\"}"), 0), length = block_length(block);
    char body[64] = {0};
    for (uint64_t at = 0; at < length && at < sizeof body - 1; at++) body[at] = (char)load_u8(block + at);
    return say("%d %s", (int)http_status_code(), body);
}

// Logs.

ATTACK(log_from_nowhere) {
    log_info(1ull << 40);
    return say("logged");
}
ATTACK(log_a_giant) {
    uint64_t block = block_alloc(48 << 20);
    if (block == 0) return say("refused");
    log_error(block);
    return say("logged");
}
ATTACK(log_many) {
    for (int i = 0; i < 200000; i++) log_warn(text("a line that says nothing, again and again and again"));
    return say("logged");
}

// Loops.

static volatile uint64_t turns;

ATTACK(endless) {
    for (;;) turns++;
}
ATTACK(endless_allocations) {
    for (;;) block_free(block_alloc(100));
}
ATTACK(endless_loads) {
    for (;;) turns += load_u64(input_offset());
}
ATTACK(endless_logs) {
    for (;;) log_info(text("x"));
}
ATTACK(endless_variables) {
    for (;;) var_set(text("v"), text("x"));
}
ATTACK(endless_requests) {
    for (;;) http_request(text("{\"url\":\"https://api.example.com/empty\"}"), 0);
}
// recursion calls itself between calls of the host.
static uint64_t deeper(uint64_t depth) {
    if (depth == UINT64_MAX) return 0;
    return block_length(block_alloc(1)) + deeper(depth + 1) + turns;
}
ATTACK(recursion) { return say("%llu", (unsigned long long)deeper(0)); }

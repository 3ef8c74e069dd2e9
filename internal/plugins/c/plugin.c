// The plug-in in C.
#include "host.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(#name)))

// bytes is a text in the plug-in's own memory. A NUL that length does not count follows it.
struct bytes {
    char *at;
    uint64_t length;
};

static struct bytes allocate_bytes(uint64_t length) {
    struct bytes b = {malloc(length + 1), length};
    if (b.at == NULL) abort();
    b.at[length] = 0;
    return b;
}

static struct bytes input(void) {
    struct bytes b = allocate_bytes(input_length());
    uint64_t at = 0;
    for (; b.length - at >= 8; at += 8) {
        uint64_t word = input_load_u64(at);
        memcpy(b.at + at, &word, sizeof word);
    }
    for (; at < b.length; at++) b.at[at] = (char)input_load_u8(at);
    return b;
}

static struct bytes load(uint64_t block) {
    struct bytes b = allocate_bytes(block_length(block));
    uint64_t at = 0;
    for (; b.length - at >= 8; at += 8) {
        uint64_t word = load_u64(block + at);
        memcpy(b.at + at, &word, sizeof word);
    }
    for (; at < b.length; at++) b.at[at] = (char)load_u8(block + at);
    return b;
}

static uint64_t store(struct bytes b) {
    uint64_t block = block_alloc(b.length), at = 0;
    for (; b.length - at >= 8; at += 8) {
        uint64_t word;
        memcpy(&word, b.at + at, sizeof word);
        store_u64(block + at, word);
    }
    for (; at < b.length; at++) store_u8(block + at, (uint8_t)b.at[at]);
    return block;
}

static uint64_t store_text(const char *text) { return store((struct bytes){(char *)text, strlen(text)}); }

static void output(struct bytes b) { output_set(store(b), b.length); }

static void output_number(uint64_t number) {
    char text[24];
    output((struct bytes){text, (uint64_t)snprintf(text, sizeof text, "%llu", (unsigned long long)number)});
}

EXPORT(echo) int32_t echo(void) {
    output(input());
    return 0;
}

static void reverse_bytes(char *from, char *to) {
    for (; to - from > 1; from++) {
        char swapped = *from;
        *from = *--to;
        *to = swapped;
    }
}

// reverse turns characters of UTF-8 around: all bytes, and then those of each character once more.
EXPORT(reverse) int32_t reverse(void) {
    struct bytes b = input();
    reverse_bytes(b.at, b.at + b.length);
    char *first = b.at;
    for (char *at = b.at; at < b.at + b.length; at++) {
        if ((*at & 0xC0) == 0x80) continue;
        reverse_bytes(first, at + 1);
        first = at + 1;
    }
    output(b);
    return 0;
}

EXPORT(count_vowels) int32_t count_vowels(void) {
    struct bytes b = input();
    unsigned count = 0;
    for (uint64_t i = 0; i < b.length; i++) count += b.at[i] != 0 && strchr("aeiouAEIOU", b.at[i]) != NULL;
    char text[32];
    output((struct bytes){text, (uint64_t)snprintf(text, sizeof text, "{\"count\":%u}", count)});
    return 0;
}

static uint64_t calls; // in the memory of the instance

EXPORT(count_memory) int32_t count_memory(void) {
    output_number(++calls);
    return 0;
}

// Clang puts variables of this address space into WebAssembly's globals, outside of memory.
static uint64_t __attribute__((address_space(1))) global_calls;

EXPORT(count_global) int32_t count_global(void) {
    output_number(++global_calls);
    return 0;
}

EXPORT(count_var) int32_t count_var(void) {
    uint64_t count = 1, block = var_get(store_text("calls"));
    if (block != 0) count += strtoull(load(block).at, NULL, 10);
    char text[24];
    uint64_t length = (uint64_t)snprintf(text, sizeof text, "%llu", (unsigned long long)count);
    var_set(store_text("calls"), store((struct bytes){text, length}));
    output_number(count);
    return 0;
}

EXPORT(config) int32_t config(void) {
    struct bytes key = input();
    uint64_t block = config_get(store(key));
    if (block != 0) {
        output(load(block));
        return 0;
    }
    static const char prefix[] = "no value for ";
    struct bytes message = allocate_bytes(sizeof prefix - 1 + key.length);
    memcpy(message.at, prefix, sizeof prefix - 1);
    memcpy(message.at + sizeof prefix - 1, key.at, key.length);
    error_set(store(message));
    return 1;
}

EXPORT(log_levels) int32_t log_levels(void) {
    void (*const levels[])(uint64_t) = {log_trace, log_debug, log_info, log_warn, log_error};
    struct bytes message = input();
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) levels[i](store(message));
    output((struct bytes){"logged", 6});
    return 0;
}

EXPORT(fail) int32_t fail(void) {
    error_set(store(input()));
    return 7;
}

EXPORT(trap) int32_t trap(void) { __builtin_trap(); }

EXPORT(get) int32_t get(void) {
    static const char before[] = "{\"method\":\"GET\",\"headers\":{},\"url\":\"", after[] = "\"}";
    struct bytes url = input(), request = allocate_bytes(sizeof before - 1 + url.length + sizeof after - 1);
    memcpy(request.at, before, sizeof before - 1);
    memcpy(request.at + sizeof before - 1, url.at, url.length);
    memcpy(request.at + sizeof before - 1 + url.length, after, sizeof after - 1);
    uint64_t block = http_request(store(request), 0);
    char status[16];
    uint64_t length = (uint64_t)snprintf(status, sizeof status, "%d ", (int)http_status_code());
    struct bytes body = load(block), answer = allocate_bytes(length + body.length);
    memcpy(answer.at, status, length);
    memcpy(answer.at + length, body.at, body.length);
    output(answer);
    return 0;
}

// allocate makes as many blocks in the host's memory as the input says, and frees every other one.
EXPORT(allocate) int32_t allocate(void) {
    struct bytes text = input();
    char *end;
    uint64_t blocks = strtoull(text.at, &end, 10), sum = 0;
    if (text.length == 0 || end != text.at + text.length) {
        error_set(store_text("not a number"));
        return 1;
    }
    for (uint64_t i = 0; i < blocks; i++) {
        uint64_t wanted = 1 + i * 7919 % 1000, block = block_alloc(wanted), length = block_length(block);
        store_u8(block, (uint8_t)i);
        uint32_t read = load_u8(block);
        if (length != wanted || read != (uint8_t)i) {
            error_set(store_text("a block is not what it should be"));
            return 1;
        }
        sum += length + read;
        if (i % 2 == 1) block_free(block);
    }
    output_number(sum);
    return 0;
}

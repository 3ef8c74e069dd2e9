// A plug-in that abuses the functions of the program that embeds its host: twice, which returns a text
// twice, and again, which has the program call the plug-in again.
#include "host.h"

#include <string.h>

#define USER(name) __attribute__((import_module("extism:host/user"), import_name(#name)))

USER(twice) uint64_t twice(uint64_t block);
USER(again) uint64_t again(uint64_t block);

#define ATTACK(name) __attribute__((export_name(#name))) int32_t name(void)

static uint64_t text(const char *t) {
    uint64_t length = strlen(t), block = block_alloc(length);
    for (uint64_t at = 0; at < length; at++) store_u8(block + at, (uint8_t)t[at]);
    return block;
}

static int32_t say(uint64_t block) {
    output_set(block, block_length(block));
    return 0;
}

ATTACK(harmless) { return say(twice(text("hello"))); }
ATTACK(pass_nothing) { return say(twice(0)); }
ATTACK(pass_nowhere) { return say(twice(1ull << 40)); }
ATTACK(pass_the_inside_of_a_block) { return say(twice(text("0123456789abcdef0123456789abcdef") + 16)); }
ATTACK(pass_a_freed_block) {
    uint64_t block = text("freed");
    block_free(block);
    return say(twice(block));
}
ATTACK(pass_a_giant) { return say(twice(block_alloc(40 << 20))); }
ATTACK(pass_what_grows) {
    uint64_t block = text("x");
    for (int i = 0; i < 64; i++) block = twice(block);
    return say(block);
}
ATTACK(recursion_through_the_host) { return say(again(text("once more"))); }
ATTACK(endless_callbacks) {
    for (;;) block_free(twice(text("x")));
}

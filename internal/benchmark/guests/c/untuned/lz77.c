#include "text.h"

enum {
    window = 1 << 15, // how far back a match may begin
    hash_bits = 13,
    shortest = 4, // letters, which the hash is of
    longest_match = 258,
    most_tries = 16, // earlier places that are compared
    word_count = 256,
    word_limit = 9,
};

static uint8_t separator(uint32_t number) {
    if (number < 16) return '\n';
    if (number < 48) return ',';
    return ' ';
}

// write_text makes a text out of a few hundred words, of which some are frequent.
static struct text write_text(size_t length) {
    struct {
        size_t length;
        uint8_t letters[word_limit];
    } words[word_count];
    uint64_t source = 9;
    for (size_t i = 0; i < word_count; i++) {
        words[i].length = 2 + next(&source) % 8;
        for (size_t j = 0; j < words[i].length; j++) words[i].letters[j] = (uint8_t)('a' + next(&source) % 26);
    }
    struct text text = {.bytes = resize(NULL, length), .room = length};
    while (text.length < length) {
        uint32_t number = next(&source);
        uint32_t word = number & number >> 8 & 255;
        size_t left = length - text.length;
        write_bytes(&text, words[word].letters, words[word].length < left ? words[word].length : left);
        if (text.length < length) write_byte(&text, separator(number >> 24));
    }
    return text;
}

static void write_leb128(struct text *t, uint32_t number) {
    for (; number > 127; number >>= 7) write_byte(t, (uint8_t)(number | 128));
    write_byte(t, (uint8_t)number);
}

// A packer finds earlier places by a hash of the letters there.
struct packer {
    const struct text *text;
    struct text packed;
    int32_t newest[1 << hash_bits]; // by hash: the last place, or -1
    int32_t older[window];          // by place within the window: the one before with the same hash, or -1
};

static uint32_t hash_at(const struct packer *p, size_t at) {
    uint32_t letters;
    memcpy(&letters, p->text->bytes + at, sizeof letters);
    return letters * 2654435761u >> (32 - hash_bits);
}

// enter notes a place for later matches.
static void enter(struct packer *p, size_t at) {
    if (at + shortest > p->text->length) return;
    uint32_t hash = hash_at(p, at);
    p->older[at % window] = p->newest[hash];
    p->newest[hash] = (int32_t)at;
}

// longest returns the longest match, and of several the nearest; zero without one.
static size_t longest(const struct packer *p, size_t at, size_t *distance) {
    const uint8_t *bytes = p->text->bytes;
    size_t limit = p->text->length - at, length = 0;
    if (limit > longest_match) limit = longest_match;
    int32_t candidate = p->newest[hash_at(p, at)];
    for (int tries = 0; tries < most_tries && candidate >= 0 && at - (size_t)candidate < window; tries++) {
        size_t same = 0;
        while (same < limit && bytes[(size_t)candidate + same] == bytes[at + same]) same++;
        if (same > length) {
            length = same;
            *distance = at - (size_t)candidate;
        }
        candidate = p->older[candidate % window];
    }
    return length;
}

static void write_literals(struct packer *p, size_t start, size_t end) {
    write_leb128(&p->packed, (uint32_t)(end - start));
    write_bytes(&p->packed, p->text->bytes + start, end - start);
}

// pack writes, in turns, letters that stand for themselves after their number, and a match:
// its length beyond the shortest, and how far back it begins. Numbers are LEB128.
static struct text pack(const struct text *text) {
    struct packer *p = allocate_zeroed(1, sizeof *p);
    p->text = text;
    memset(p->newest, -1, sizeof p->newest);
    size_t plain = 0; // where the letters begin that no match covers
    for (size_t at = 0; at + shortest <= text->length;) {
        size_t distance = 0, length = longest(p, at, &distance);
        if (length < shortest) {
            enter(p, at++);
            continue;
        }
        write_literals(p, plain, at);
        write_leb128(&p->packed, (uint32_t)(length - shortest));
        write_leb128(&p->packed, (uint32_t)distance);
        for (size_t end = at + length; at < end; at++) enter(p, at);
        plain = at;
    }
    write_literals(p, plain, text->length);
    struct text packed = p->packed;
    free(p);
    return packed;
}

// read_leb128 reads at most 28 bits, more than any number of ours has.
static bool read_leb128(const struct text *t, size_t *at, uint32_t *value) {
    *value = 0;
    for (int shift = 0; shift < 28 && *at < t->length; shift += 7) {
        uint8_t byte = t->bytes[(*at)++];
        *value |= (uint32_t)(byte & 127) << shift;
        if (byte < 128) return true;
    }
    return false;
}

// unpack reads what pack wrote, and refuses anything else.
static bool unpack(const struct text *packed, struct text *text) {
    for (size_t at = 0;;) {
        uint32_t count, length, distance;
        if (!read_leb128(packed, &at, &count) || count > packed->length - at) return false;
        write_bytes(text, packed->bytes + at, count);
        at += count;
        if (at == packed->length) return true;
        if (!read_leb128(packed, &at, &length) || length > longest_match - shortest) return false;
        if (!read_leb128(packed, &at, &distance) || distance == 0 || distance > text->length) return false;
        // Letter by letter: a match may overlap what it makes.
        for (length += shortest; length > 0; length--) write_byte(text, text->bytes[text->length - distance]);
    }
}

// Packs a text of size letters and unpacks it again.
KERNEL(lz77) {
    struct text text = write_text(positive(size)), packed = pack(&text), unpacked = {0};
    uint64_t checksum = 0;
    if (unpack(&packed, &unpacked) && unpacked.length == text.length &&
        (text.length == 0 || memcmp(unpacked.bytes, text.bytes, text.length) == 0)) {
        checksum = mix(checksum_seed, packed.length);
        for (size_t i = 0; i < packed.length; i++) checksum = mix(checksum, packed.bytes[i]);
    }
    free(text.bytes);
    free(packed.bytes);
    free(unpacked.bytes);
    return checksum;
}

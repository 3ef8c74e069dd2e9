#include "json_parse.h"

struct text {
    char *bytes;
    size_t length, room;
};

static void write(struct text *t, const char *piece, size_t length) {
    if (t->room - t->length < length) {
        t->room = 2 * t->room + length;
        t->bytes = resize(t->bytes, t->room);
    }
    memcpy(t->bytes + t->length, piece, length);
    t->length += length;
}

static void write_string(struct text *t, const char *piece) { write(t, piece, strlen(piece)); }

static void write_number(struct text *t, uint32_t number) {
    char digits[10], *first = digits + sizeof digits;
    do *--first = (char)('0' + number % 10);
    while (number /= 10);
    write(t, first, (size_t)(digits + sizeof digits - first));
}

// write_json makes a text that holds every kind of value.
static void write_json(struct text *t, int32_t size) {
    uint64_t source = 6;
    write_string(t, "[");
    for (int32_t i = 0; i < size; i++) {
        if (i > 0) write_string(t, ",\n ");
        write_string(t, "{\"id\": ");
        write_number(t, (uint32_t)i);
        write_string(t, ", \"name\": \"user \\\"");
        write_number(t, next(&source) % 100000);
        write_string(t, "\\\" caf\\u00e9\\n\", \"tags\": [\"red\", \"\", \"green\"], \"score\": -");
        write_number(t, next(&source) % 1000);
        write_string(t, ".");
        write_number(t, next(&source) % 1000);
        write_string(t, ", \"active\": true, \"parent\": null, \"place\": {\"x\": ");
        write_number(t, next(&source));
        write_string(t, ", \"y\": [0, [], {}], \"open\": false}}");
    }
    write_string(t, "]");
}

// walk folds the value and everything below it into a checksum.
static uint64_t walk(const struct parser *p, uint64_t checksum, uint32_t at) {
    const struct value *v = &p->values[at];
    checksum = mix(checksum, v->kind);
    if (v->kind == kind_number) checksum = mix_double(checksum, v->number);
    if (v->kind == kind_string) {
        for (uint32_t i = v->start; i < v->end; i++) checksum = mix(checksum, (uint8_t)p->strings[i]);
    }
    for (uint32_t child = v->child; child != none; child = p->values[child].next) {
        checksum = walk(p, checksum, child);
    }
    return checksum;
}

// Writes a text of size records, parses it into a tree and walks the tree.
KERNEL(json) {
    struct text text = {0};
    write_json(&text, size);
    struct parser p = {0};
    uint32_t root = parse_document(&p, text.bytes, text.length);
    uint64_t checksum = root == none ? 0 : walk(&p, checksum_seed, root);
    free(text.bytes);
    free(p.values);
    free(p.strings);
    return checksum;
}

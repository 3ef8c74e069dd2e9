#include "json_parse.h"

static uint32_t parse_value(struct parser *p);

static uint32_t add(struct parser *p, enum kind kind) {
    if (p->value_count == p->value_room) {
        p->value_room = p->value_room ? 2 * p->value_room : 64;
        p->values = resize(p->values, p->value_room * sizeof *p->values);
    }
    p->values[p->value_count] = (struct value){.kind = (uint8_t)kind};
    return p->value_count++;
}

static void append(struct parser *p, uint32_t byte) {
    if (p->string_length == p->string_room) {
        p->string_room = p->string_room ? 2 * p->string_room : 256;
        p->strings = resize(p->strings, p->string_room);
    }
    p->strings[p->string_length++] = (char)byte;
}

static void skip_space(struct parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\t' || *p->at == '\r')) p->at++;
}

// take skips white space and consumes one wanted byte.
static bool take(struct parser *p, char wanted) {
    skip_space(p);
    if (p->at == p->end || *p->at != wanted) return false;
    p->at++;
    return true;
}

static uint32_t parse_word(struct parser *p, const char *word, enum kind kind) {
    size_t length = strlen(word);
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0) return none;
    p->at += length;
    return add(p, kind);
}

static uint32_t parse_number(struct parser *p) {
    bool negative = *p->at == '-', fraction = false;
    double mantissa = 0, scale = 1;
    int digits = 0;
    if (negative) p->at++;
    for (; p->at < p->end; p->at++) {
        if (*p->at == '.' && !fraction && digits > 0) {
            fraction = true;
            continue;
        }
        if (*p->at < '0' || *p->at > '9') break;
        mantissa = mantissa * 10 + (*p->at - '0');
        if (fraction) scale *= 10;
        digits++;
    }
    if (digits == 0) return none;
    uint32_t at = add(p, kind_number);
    p->values[at].number = (negative ? -mantissa : mantissa) / scale;
    return at;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static bool parse_code_point(struct parser *p) {
    uint32_t point = 0;
    if (p->end - p->at < 4) return false;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(*p->at++);
        if (digit < 0) return false;
        point = point << 4 | (uint32_t)digit;
    }
    if (point >= 0xd800 && point < 0xe000) return false;
    if (point < 0x80) {
        append(p, point);
    } else if (point < 0x800) {
        append(p, 0xc0 | point >> 6);
        append(p, 0x80 | (point & 0x3f));
    } else {
        append(p, 0xe0 | point >> 12);
        append(p, 0x80 | (point >> 6 & 0x3f));
        append(p, 0x80 | (point & 0x3f));
    }
    return true;
}

// parse_escape reads what follows a backslash.
static bool parse_escape(struct parser *p) {
    if (p->at == p->end) return false;
    char c = *p->at++;
    switch (c) {
    case '"': case '\\': case '/': append(p, (uint8_t)c); return true;
    case 'b': append(p, '\b'); return true;
    case 'f': append(p, '\f'); return true;
    case 'n': append(p, '\n'); return true;
    case 'r': append(p, '\r'); return true;
    case 't': append(p, '\t'); return true;
    case 'u': return parse_code_point(p);
    }
    return false;
}

static uint32_t parse_string(struct parser *p) {
    uint32_t start = p->string_length;
    p->at++;
    while (p->at < p->end) {
        char c = *p->at++;
        if (c == '"') {
            uint32_t at = add(p, kind_string);
            p->values[at].start = start;
            p->values[at].end = p->string_length;
            return at;
        }
        if ((uint8_t)c < ' ') return none;
        if (c != '\\') append(p, (uint8_t)c);
        else if (!parse_escape(p)) return none;
    }
    return none;
}

// link puts an item behind the last of its list and returns the item, the new last.
static uint32_t link(struct parser *p, uint32_t list, uint32_t last, uint32_t item) {
    if (last == none) p->values[list].child = item;
    else p->values[last].next = item;
    return item;
}

// parse_list reads an array, or an object as an array of names and values in turn.
static uint32_t parse_list(struct parser *p, enum kind kind, char closing) {
    p->at++;
    uint32_t list = add(p, kind), last = none;
    if (take(p, closing)) return list;
    for (;;) {
        if (kind == kind_object) {
            skip_space(p);
            if (p->at == p->end || *p->at != '"') return none;
            uint32_t name = parse_string(p);
            if (name == none || !take(p, ':')) return none;
            last = link(p, list, last, name);
        }
        uint32_t item = parse_value(p);
        if (item == none) return none;
        last = link(p, list, last, item);
        if (take(p, closing)) return list;
        if (!take(p, ',')) return none;
    }
}

static uint32_t parse_value(struct parser *p) {
    skip_space(p);
    if (p->at == p->end) return none;
    switch (*p->at) {
    case '{': return parse_list(p, kind_object, '}');
    case '[': return parse_list(p, kind_array, ']');
    case '"': return parse_string(p);
    case 'n': return parse_word(p, "null", kind_null);
    case 'f': return parse_word(p, "false", kind_false);
    case 't': return parse_word(p, "true", kind_true);
    }
    return parse_number(p);
}

uint32_t parse_document(struct parser *p, const char *text, size_t length) {
    p->at = text;
    p->end = text + length;
    add(p, 0);
    uint32_t root = parse_value(p);
    skip_space(p);
    return p->at == p->end ? root : none;
}

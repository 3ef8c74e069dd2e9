// A JSON parser that reads one text into an arena of values.
#ifndef JSON_PARSE_H
#define JSON_PARSE_H

#include "kernels.h"

// The kinds of values, numbered alike in every language.
enum kind { kind_null = 1, kind_false, kind_true, kind_number, kind_string, kind_array, kind_object };

// No value: index 0 of the arena is not used.
enum { none = 0 };

// A node of the tree. An object's members are its children, in pairs.
struct value {
    double number;
    uint32_t start, end;  // of a string, in parser.strings
    uint32_t child, next; // indices in parser.values
    uint8_t kind;
};

struct parser {
    const char *at, *end;
    struct value *values;
    uint32_t value_count, value_room;
    char *strings;
    uint32_t string_length, string_room;
};

// parse_document returns the root of the text's tree, or none if it is no JSON. It takes
// JSON but for surrogate pairs and exponents.
uint32_t parse_document(struct parser *p, const char *text, size_t length);

#endif

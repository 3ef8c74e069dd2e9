// JSON Lines: an object on each line, whose members are the columns.
#include <stdlib.h>
#include <string.h>

#include "records.h"

enum { depth_limit = 64 };

// Where parsing stands in a line.
struct cursor {
    const char *p, *end;
    bool deep; // whether it stopped at what is nested too deeply
};

static void pass_space(struct cursor *c) {
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\r')) c->p++;
}

static bool take(struct cursor *c, char wanted) {
    pass_space(c);
    if (c->p == c->end || *c->p != wanted) return false;
    c->p++;
    return true;
}

static bool is_hex(char c) { return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f'); }

// pass_string passes over a string whose quote was taken, up to and with the quote that closes it.
static bool pass_string(struct cursor *c, bool *escaped) {
    *escaped = false;
    for (; c->p < c->end; c->p++) {
        if (*c->p == '"') return c->p++, true;
        if ((unsigned char)*c->p < 0x20) return false;
        if (*c->p != '\\') continue;
        *escaped = true;
        if (++c->p == c->end) return false;
        if (*c->p == 'u') {
            for (int i = 1; i <= 4; i++) {
                if (c->p + i >= c->end || !is_hex(c->p[i])) return false;
            }
            c->p += 4;
        } else if (!memchr("\"\\/bfnrt", *c->p, 8)) {
            return false;
        }
    }
    return false;
}

static bool pass_digits(struct cursor *c) {
    const char *from = c->p;
    while (c->p < c->end && *c->p >= '0' && *c->p <= '9') c->p++;
    return c->p > from;
}

static bool pass_number(struct cursor *c) {
    if (c->p < c->end && *c->p == '-') c->p++;
    if (c->p < c->end && *c->p == '0') c->p++;
    else if (!pass_digits(c)) return false;
    if (c->p < c->end && *c->p == '.' && (c->p++, !pass_digits(c))) return false;
    if (c->p < c->end && (*c->p | 32) == 'e') {
        c->p++;
        if (c->p < c->end && (*c->p == '+' || *c->p == '-')) c->p++;
        return pass_digits(c);
    }
    return true;
}

static bool pass_word(struct cursor *c, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(c->end - c->p) < length || memcmp(c->p, word, length) != 0) return false;
    c->p += length;
    return true;
}

static bool pass_value(struct cursor *c, int depth);

static bool pass_array(struct cursor *c, int depth) {
    if (take(c, ']')) return true;
    do {
        if (!pass_value(c, depth)) return false;
    } while (take(c, ','));
    return take(c, ']');
}

static bool pass_object(struct cursor *c, int depth) {
    bool escaped;
    if (take(c, '}')) return true;
    do {
        if (!take(c, '"') || !pass_string(c, &escaped) || !take(c, ':') || !pass_value(c, depth)) return false;
    } while (take(c, ','));
    return take(c, '}');
}

static bool pass_value(struct cursor *c, int depth) {
    bool escaped;
    pass_space(c);
    if (depth > depth_limit) return c->deep = true, false;
    if (c->p == c->end) return false;
    switch (*c->p) {
    case '{': return c->p++, pass_object(c, depth + 1);
    case '[': return c->p++, pass_array(c, depth + 1);
    case '"': return c->p++, pass_string(c, &escaped);
    case 't': return pass_word(c, "true");
    case 'f': return pass_word(c, "false");
    case 'n': return pass_word(c, "null");
    }
    return pass_number(c);
}

// column returns the column of a member, which is most often the one behind that of the member before. It
// returns -1 if there is none, and -2 if there is no room for one more.
static int column(struct records *r, const char *name, size_t length, int guess) {
    int count = *r->name_count;
    if (guess < count && r->names[guess].length == length && memcmp(r->names[guess].text, name, length) == 0) return guess;
    for (int i = 0; i < count; i++) {
        if (r->names[i].length == length && memcmp(r->names[i].text, name, length) == 0) return i;
    }
    if (!r->learn) return -1;
    if (count == column_limit) return -2;
    char *copy = malloc(length + 1);
    if (!copy) return -2;
    memcpy(copy, name, length);
    copy[length] = 0;
    r->names[count] = (struct name){copy, length};
    *r->name_count = count + 1;
    return count;
}

static int column_of(struct records *r, const char *from, const char *to, bool escaped, int guess) {
    if (!escaped) return column(r, from, (size_t)(to - from), guess);
    struct field f = {(unsigned)(from - r->record), (unsigned)(to - from), kind_escaped};
    char *name = malloc(f.length + 1);
    if (!name) return -2;
    int index = column(r, name, decode(r, &f, name), guess);
    free(name);
    return index;
}

static enum outcome wrong(struct records *r, const char *what) {
    sqlite3_snprintf(sizeof r->problem, r->problem, "line %lld: %s", r->line, what);
    return outcome_failed;
}

// invalid says where parsing stopped.
static enum outcome invalid(struct records *r, const struct cursor *c) {
    const char *what = c->deep ? "the object is nested deeper than 64 levels" : "the object is not valid JSON";
    if (c->p == c->end) return wrong(r, "the object is not valid JSON: it does not end on its line; JSON Lines has one object on each line");
    long long at = c->p - r->record + 1;
    sqlite3_snprintf(sizeof r->problem, r->problem, "line %lld: %s, at byte %lld of the line", r->line, what, at);
    return outcome_failed;
}

// value passes over a member's value and says where and what it is.
static bool value(struct cursor *c, const char **from, const char **to, enum kind *kind) {
    bool escaped = false;
    pass_space(c);
    if (c->p == c->end) return false;
    char first = *c->p;
    *from = c->p;
    if (first == '"') {
        ++*from;
        c->p++;
        if (!pass_string(c, &escaped)) return false;
        *to = c->p - 1;
        *kind = escaped ? kind_escaped : kind_string;
        return true;
    }
    if (!pass_value(c, 0)) return false;
    *to = c->p;
    *kind = first == '{' || first == '[' ? kind_nested : first == 't' ? kind_true : first == 'f' ? kind_false : first == 'n' ? kind_missing : kind_number;
    return true;
}

// set stores a member's value, and what lies between as missing.
static bool set(struct records *r, int index, const char *from, const char *to, enum kind kind, unsigned char *seen) {
    while (r->count <= index) {
        if (!add_field(r, r->count, r->record, r->record, kind_missing)) return false;
        seen[r->count++] = 0;
    }
    seen[index] = 1;
    return add_field(r, index, from, to, kind);
}

enum outcome parse_json_line(struct records *r) {
    static unsigned char seen[column_limit]; // whether the record has had the member; valid below count
    const char *end = r->bytes + r->end, *line_end = memchr(r->record, '\n', (size_t)(end - r->record));
    if (!line_end) {
        if (!r->finished) return outcome_end;
        line_end = end;
    }
    struct cursor c = {r->record, line_end, false};
    int guess = 0;
    r->count = 0;
    r->lines_below = 1;
    r->start = (size_t)(line_end < end ? line_end + 1 - r->bytes : end - r->bytes);
    if (!take(&c, '{')) return wrong(r, "this is not a JSON object; JSON Lines has one on each line");
    if (!take(&c, '}')) {
        do {
            const char *name, *from, *to;
            bool escaped;
            enum kind kind;
            if (!take(&c, '"')) return invalid(r, &c);
            name = c.p;
            if (!pass_string(&c, &escaped)) return invalid(r, &c);
            int index = column_of(r, name, c.p - 1, escaped, guess);
            if (index == -2) return wrong(r, "the objects have more than 2000 different members");
            if (!take(&c, ':') || !value(&c, &from, &to, &kind)) return invalid(r, &c);
            if (index < 0) continue;
            if (index < r->count && seen[index]) return wrong(r, "the object has a member twice");
            if (!set(r, index, from, to, kind, seen)) return outcome_failed;
            guess = index + 1;
        } while (take(&c, ','));
        if (!take(&c, '}')) return invalid(r, &c);
    }
    pass_space(&c);
    if (c.p != c.end) return wrong(r, "something follows the object; JSON Lines has one object on each line");
    return outcome_record;
}

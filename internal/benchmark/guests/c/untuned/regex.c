#include "regex_parse.h"
#include "text.h"

// The patterns that each line of the log is searched for.
static const char *const patterns[] = {
    "[0-9]+-[0-9]+-[0-9]+T[0-9:]+",
    "(GET|POST|PUT|DELETE) (/[a-z]+)*/[0-9]+",
    "[a-z][a-z.]*@[a-z]+(\\.[a-z]+)+",
    "(a|ab|abc)*(d|e)?=.*ms",
};

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static void write_random(struct text *t, uint64_t *source, uint32_t below) { write_number(t, next(source) % below); }

static void pick(struct text *t, uint64_t *source, const char *const *from, uint32_t count) {
    write_string(t, from[next(source) % count]);
}

// write_log makes lines of which each pattern matches some.
static struct text write_log(int32_t size) {
    static const char *const methods[] = {"GET", "POST", "PUT", "DELETE", "PATCH"};
    static const char *const paths[] = {"/", "/users/", "/users/orders/", "/static"};
    static const char *const names[] = {"ann", "bob.b", "cab", "dee.e.f"};
    static const char *const keys[] = {"abd", "abcabe", "took", "a"};
    uint64_t source = 10;
    struct text text = {0};
    for (int32_t i = 0; i < size; i++) {
        write_string(&text, "2026-");
        write_random(&text, &source, 13);
        write_byte(&text, '-');
        write_random(&text, &source, 32);
        write_byte(&text, 'T');
        write_random(&text, &source, 24);
        write_byte(&text, ':');
        write_random(&text, &source, 60);
        write_byte(&text, ' ');
        pick(&text, &source, methods, LENGTH(methods));
        write_byte(&text, ' ');
        pick(&text, &source, paths, LENGTH(paths));
        write_random(&text, &source, 10000);
        write_byte(&text, ' ');
        pick(&text, &source, names, LENGTH(names));
        write_string(&text, "@mail.");
        pick(&text, &source, names, LENGTH(names));
        write_byte(&text, ' ');
        pick(&text, &source, keys, LENGTH(keys));
        write_byte(&text, '=');
        write_random(&text, &source, 1000);
        write_string(&text, "ms\n");
    }
    return text;
}

struct thread { uint32_t state, start; };

// A state set holds states in the order in which they were added: the earlier the match
// began, the earlier.
struct state_set {
    struct thread *states;
    size_t count;
    uint32_t *place; // by state: where states has it, if it has
};

// A matcher runs a pattern over lines. It is in a set of states at a time, so it never goes
// back in a line.
struct matcher {
    const struct regex *regex;
    struct state_set current, next;
};

struct span { size_t start, end; };

static bool has(const struct state_set *s, uint32_t state) {
    uint32_t place = s->place[state];
    return place < s->count && s->states[place].state == state;
}

// follow adds a state, or those that it leads to without reading.
static void follow(const struct regex *r, struct state_set *s, uint32_t state, uint32_t start) {
    if (has(s, state)) return;
    s->place[state] = (uint32_t)s->count;
    s->states[s->count++] = (struct thread){state, start};
    const struct state *now = &r->program[state];
    if (now->operation == op_jump) {
        follow(r, s, state + (uint32_t)now->first, start);
    } else if (now->operation == op_split) {
        follow(r, s, state + (uint32_t)now->first, start);
        follow(r, s, state + (uint32_t)now->second, start);
    }
}

static bool accepts(const struct regex *r, const struct state *state, uint8_t byte) {
    switch (state->operation) {
    case op_byte: return state->first == byte;
    case op_class: return r->classes[state->first].bits[byte >> 6] >> (byte & 63) & 1;
    case op_any: return true;
    default: return false;
    }
}

// first finds the leftmost match from a place on, and of those the longest.
static bool first(struct matcher *m, const uint8_t *line, size_t length, size_t from, struct span *found) {
    const struct regex *r = m->regex;
    bool ok = false;
    m->current.count = 0;
    for (size_t at = from;; at++) {
        if (!ok) follow(r, &m->current, 0, (uint32_t)at);
        if (m->current.count == 0) return ok;
        m->next.count = 0;
        for (size_t i = 0; i < m->current.count; i++) {
            struct thread t = m->current.states[i];
            if (ok && t.start > found->start) break;
            const struct state *state = &r->program[t.state];
            if (state->operation == op_match) {
                ok = true;
                *found = (struct span){t.start, at};
            } else if (at < length && accepts(r, state, line[at])) {
                follow(r, &m->next, t.state + 1, t.start);
            }
        }
        if (at == length) return ok;
        struct state_set kept = m->current;
        m->current = m->next;
        m->next = kept;
    }
}

// all folds the matches in a line into a checksum.
static uint64_t all(struct matcher *m, uint64_t checksum, const uint8_t *line, size_t length) {
    struct span found = {0};
    for (size_t at = 0; at <= length && first(m, line, length, at, &found);) {
        checksum = mix(checksum, (uint64_t)found.start << 32 | found.end);
        at = found.end > at ? found.end : at + 1;
    }
    return checksum;
}

static struct state_set new_set(size_t states) {
    return (struct state_set){
        .states = resize(NULL, states * sizeof(struct thread)),
        .place = allocate_zeroed(states, sizeof(uint32_t)),
    };
}

static void release_set(struct state_set *s) {
    free(s->states);
    free(s->place);
}

// Finds all matches of the patterns in a log of size lines.
KERNEL(regex) {
    struct text log = write_log(size);
    uint64_t checksum = checksum_seed;
    for (size_t i = 0; i < LENGTH(patterns); i++) {
        struct regex r = compile(patterns[i]);
        struct matcher m = {&r, new_set(r.length), new_set(r.length)};
        for (size_t start = 0; start < log.length;) {
            size_t end = start;
            while (log.bytes[end] != '\n') end++;
            checksum = all(&m, checksum, log.bytes + start, end - start);
            start = end + 1;
        }
        release_set(&m.current);
        release_set(&m.next);
        release(&r);
    }
    free(log.bytes);
    return checksum;
}

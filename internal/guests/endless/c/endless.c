// Endless is a guest that never ends. Its first argument says what stands before the loop, the
// second one how the loop is written, or "once" for none, so that tests can see that it is the
// loop that does not end. Each loop stands in a function of its own, behind what precedes it.
#include <stdio.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

// The compiler knows nothing of these, so that it deletes no loop and moves nothing out of one.
// Each loop counts at a pace of its own, so that no two of them become one.
static volatile unsigned count;
static volatile int never = 0, always = 1;

static NOINLINE void step(void) { count += 1; }

static char input[99];

static void (*volatile in_table)(void) = step;

static NOINLINE void with(void (*callback)(void)) {
    count += 2;
    callback();
    count += 3;
}

// LOOPS defines a function for each way to write a loop.
#define LOOPS(position, before)                     \
    static NOINLINE void position##_for(void) {     \
        before;                                     \
        for (;;) count += 10;                       \
    }                                               \
    static NOINLINE void position##_while(void) {   \
        before;                                     \
        while (always) count += 11;                 \
    }                                               \
    static NOINLINE void position##_do(void) {      \
        before;                                     \
        do count += 12;                             \
        while (!never);                             \
    }                                               \
    static NOINLINE void position##_goto(void) {    \
        before;                                     \
        if (always) goto second;                    \
    first:                                          \
        count += 13;                                \
        if (never) goto first;                      \
    second:                                         \
        count += 14;                                \
        if (count & 1) goto second;                 \
        goto first;                                 \
    }                                               \
    static NOINLINE void position##_return(void) {  \
        before;                                     \
        for (;;) {                                  \
            count += 15;                            \
            if (never) return;                      \
        }                                           \
    }                                               \
    static NOINLINE void position##_calling(void) { \
        before;                                     \
        for (;;) {                                  \
            step();                                 \
            count += 16;                            \
        }                                           \
    }                                               \
    static NOINLINE void position##_once(void) {    \
        before;                                     \
        count += 17;                                \
    }

LOOPS(read, count += (unsigned)fread(input, 1, sizeof input, stdin))
LOOPS(call, step())
LOOPS(table, in_table())
LOOPS(called, )

// INSIDE defines functions whose loops are inside a callback of theirs.
#define INSIDE(form) \
    static NOINLINE void callback_##form(void) { with(called_##form); }

INSIDE(for)
INSIDE(while)
INSIDE(do)
INSIDE(goto)
INSIDE(return)
INSIDE(calling)
INSIDE(once)

struct loop {
    const char *position, *form;
    void (*run)(void);
};

#define ROW(position, form) {#position, #form, position##_##form}
#define ROWS(position)                                                                              \
    ROW(position, for), ROW(position, while), ROW(position, do), ROW(position, goto), ROW(position, return), \
        ROW(position, calling), ROW(position, once)

static const struct loop loops[] = {ROWS(read), ROWS(call), ROWS(table), ROWS(callback)};

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        if (strcmp(loops[i].position, argv[1]) != 0 || strcmp(loops[i].form, argv[2]) != 0) continue;
        loops[i].run();
        return 0;
    }
    return 2;
}

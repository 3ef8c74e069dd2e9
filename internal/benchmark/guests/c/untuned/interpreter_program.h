// What the interpreter runs.
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdint.h>

// What takes two values takes the upper one as its second: push a, push b, subtract is
// a - b. Store finds the address above the value.
enum operation {
    op_push, // the operand
    op_dup,
    op_swap,
    op_drop,
    op_get,       // the local that the operand names
    op_set,       // the local
    op_increment, // the local
    op_add,
    op_subtract,
    op_multiply,
    op_divide,
    op_remainder,
    op_and,
    op_or,
    op_xor,
    op_shift_left,
    op_shift_right,
    op_equal,
    op_less,
    op_jump, // to the operand
    op_jump_if,
    op_jump_unless,
    op_load,
    op_store,
    op_call, // the operand, with locals that are zero
    op_return,
    op_halt,
};

struct instruction {
    enum operation operation;
    uint64_t operand;
};

// The program counts the steps of Collatz's sequences, finds common divisors by recursion,
// and writes to memory what it has.
static const struct instruction program[] = {
    // main(limit), with 0: i, 1: total, 2: limit
    /*  0 */ {op_set, 2}, {op_push, 1}, {op_set, 0},
    /*  3 */ {op_get, 2}, {op_get, 0}, {op_less, 0}, {op_jump_if, 45},
    /*  7 */ {op_get, 0}, {op_call, 47}, {op_get, 1}, {op_add, 0}, {op_set, 1},
    /* 12 */ {op_get, 0}, {op_push, 360360}, {op_call, 71}, {op_get, 1}, {op_xor, 0}, {op_set, 1},
    /* 18 */ {op_get, 1}, {op_dup, 0}, {op_push, 5}, {op_shift_left, 0}, {op_swap, 0}, {op_push, 59}, {op_shift_right, 0}, {op_or, 0}, {op_set, 1},
    /* 27 */ {op_get, 0}, {op_push, 7}, {op_multiply, 0}, {op_push, 255}, {op_and, 0}, {op_load, 0}, {op_get, 1}, {op_swap, 0}, {op_subtract, 0}, {op_set, 1},
    /* 37 */ {op_get, 0}, {op_push, 255}, {op_and, 0}, {op_get, 1}, {op_call, 83}, {op_drop, 0},
    /* 43 */ {op_increment, 0}, {op_jump, 3},
    /* 45 */ {op_get, 1}, {op_halt, 0},
    // collatz(n): how many steps lead to 1; with 0: n, 1: the steps
    /* 47 */ {op_set, 0},
    /* 48 */ {op_get, 0}, {op_push, 1}, {op_equal, 0}, {op_jump_if, 69},
    /* 52 */ {op_increment, 1}, {op_get, 0}, {op_push, 2}, {op_remainder, 0}, {op_jump_if, 62},
    /* 57 */ {op_get, 0}, {op_push, 2}, {op_divide, 0}, {op_set, 0}, {op_jump, 48},
    /* 62 */ {op_get, 0}, {op_push, 3}, {op_multiply, 0}, {op_push, 1}, {op_add, 0}, {op_set, 0}, {op_jump, 48},
    /* 69 */ {op_get, 1}, {op_return, 0},
    // gcd(a, b), which calls itself; with 0: a, 1: b
    /* 71 */ {op_set, 1}, {op_set, 0}, {op_get, 1}, {op_jump_unless, 81},
    /* 75 */ {op_get, 1}, {op_get, 0}, {op_get, 1}, {op_remainder, 0}, {op_call, 71}, {op_return, 0},
    /* 81 */ {op_get, 0}, {op_return, 0},
    // exchange(address, new) gives what was there; with 0: address, 1: new
    /* 83 */ {op_set, 1}, {op_set, 0}, {op_get, 0}, {op_load, 0}, {op_get, 1}, {op_get, 0}, {op_store, 0}, {op_return, 0},
};

#endif

#include "../kernels/kernels.h"
#include "interpreter_program.h"

enum {
    memory_cells = 256,
    stack_cells = 256,
    most_frames = 64, // calls inside one another
    local_count = 4,  // of each call
};

struct frame {
    uint64_t locals[local_count];
    const struct instruction *back; // where the caller goes on
};

// A machine takes programs that leave the stack as they have to; what depends on values, it
// checks.
struct machine {
    uint64_t memory[memory_cells], stack[stack_cells];
    struct frame frames[most_frames];
};

// run says whether the program came to its end, and leaves what is on the stack at *result.
static bool run(struct machine *m, const struct instruction *code, uint64_t argument, uint64_t *result) {
    const struct instruction *at = code;
    struct frame *frame = m->frames;
    uint64_t *top = m->stack, value; // the uppermost value
    *top = argument;
    for (;;) {
        const struct instruction *i = at++;
        switch (i->operation) {
        case op_push: *++top = i->operand; break;
        case op_dup:
            value = *top;
            *++top = value;
            break;
        case op_swap:
            value = top[0];
            top[0] = top[-1];
            top[-1] = value;
            break;
        case op_drop: top--; break;
        case op_get: *++top = frame->locals[i->operand]; break;
        case op_set: frame->locals[i->operand] = *top--; break;
        case op_increment: frame->locals[i->operand]++; break;
        case op_add:
            value = *top--;
            *top += value;
            break;
        case op_subtract:
            value = *top--;
            *top -= value;
            break;
        case op_multiply:
            value = *top--;
            *top *= value;
            break;
        case op_divide:
            value = *top--;
            if (value == 0) return false;
            *top /= value;
            break;
        case op_remainder:
            value = *top--;
            if (value == 0) return false;
            *top %= value;
            break;
        case op_and:
            value = *top--;
            *top &= value;
            break;
        case op_or:
            value = *top--;
            *top |= value;
            break;
        case op_xor:
            value = *top--;
            *top ^= value;
            break;
        case op_shift_left:
            value = *top--;
            *top <<= value & 63;
            break;
        case op_shift_right:
            value = *top--;
            *top >>= value & 63;
            break;
        case op_equal:
            value = *top--;
            *top = *top == value;
            break;
        case op_less:
            value = *top--;
            *top = *top < value;
            break;
        case op_jump: at = code + i->operand; break;
        case op_jump_if:
            if (*top-- != 0) at = code + i->operand;
            break;
        case op_jump_unless:
            if (*top-- == 0) at = code + i->operand;
            break;
        case op_load:
            if (*top >= memory_cells) return false;
            *top = m->memory[*top];
            break;
        case op_store:
            if (*top >= memory_cells) return false;
            m->memory[*top] = top[-1];
            top -= 2;
            break;
        case op_call:
            if (++frame == m->frames + most_frames) return false;
            *frame = (struct frame){.back = at};
            at = code + i->operand;
            break;
        case op_return:
            if (frame == m->frames) return false;
            at = frame->back;
            frame--;
            break;
        case op_halt: *result = *top; return true;
        default: return false;
        }
    }
}

// Runs a program on a stack machine, whose instructions a switch in a loop tells apart. The
// program takes size turns.
KERNEL(interpreter) {
    struct machine m = {.memory = {0}};
    uint64_t result;
    if (!run(&m, program, positive(size), &result)) return 0;
    uint64_t checksum = mix(checksum_seed, result);
    for (size_t i = 0; i < memory_cells; i++) checksum = mix(checksum, m.memory[i]);
    return checksum;
}

use crate::interpreter_program::{Instruction, PROGRAM};
use crate::{mix, positive, CHECKSUM_SEED};

const MEMORY: usize = 256;
const STACK: usize = 256;
/// Calls inside one another.
const DEPTH: usize = 64;
/// Of each call.
const LOCALS: usize = 4;

#[derive(Clone, Copy, Default)]
struct Frame {
    locals: [u64; LOCALS],
    /// Where the caller goes on.
    back: usize,
}

/// Takes programs that leave the stack as they have to; what depends on values, it checks.
struct Machine {
    memory: [u64; MEMORY],
    stack: [u64; STACK],
    /// Of the stack.
    used: usize,
    frames: [Frame; DEPTH],
}

impl Machine {
    fn new() -> Machine {
        Machine { memory: [0; MEMORY], stack: [0; STACK], used: 0, frames: [Frame::default(); DEPTH] }
    }

    fn push(&mut self, value: u64) {
        self.stack[self.used] = value;
        self.used += 1;
    }

    fn pop(&mut self) -> u64 {
        self.used -= 1;
        self.stack[self.used]
    }

    /// Puts the result of an operator in place of its two operands.
    fn operate(&mut self, operator: impl Fn(u64, u64) -> u64) {
        let second = self.pop();
        let first = self.pop();
        self.push(operator(first, second));
    }

    /// Returns what is on the stack when the program comes to its end.
    fn run(&mut self, program: &[Instruction]) -> Option<u64> {
        let mut at = 0;
        let mut depth = 0;
        loop {
            let instruction = program[at];
            at += 1;
            match instruction {
                Instruction::Push(value) => self.push(value),
                Instruction::Dup => {
                    let value = self.stack[self.used - 1];
                    self.push(value);
                }
                Instruction::Swap => self.stack.swap(self.used - 1, self.used - 2),
                Instruction::Drop => self.used -= 1,
                Instruction::Get(local) => self.push(self.frames[depth].locals[usize::from(local)]),
                Instruction::Set(local) => self.frames[depth].locals[usize::from(local)] = self.pop(),
                Instruction::Increment(local) => self.frames[depth].locals[usize::from(local)] += 1,
                Instruction::Add => self.operate(u64::wrapping_add),
                Instruction::Subtract => self.operate(u64::wrapping_sub),
                Instruction::Multiply => self.operate(u64::wrapping_mul),
                Instruction::Divide => {
                    let second = self.pop();
                    let first = self.pop();
                    self.push(first.checked_div(second)?);
                }
                Instruction::Remainder => {
                    let second = self.pop();
                    let first = self.pop();
                    self.push(first.checked_rem(second)?);
                }
                Instruction::And => self.operate(|a, b| a & b),
                Instruction::Or => self.operate(|a, b| a | b),
                Instruction::Xor => self.operate(|a, b| a ^ b),
                Instruction::ShiftLeft => self.operate(|a, b| a << (b & 63)),
                Instruction::ShiftRight => self.operate(|a, b| a >> (b & 63)),
                Instruction::Equal => self.operate(|a, b| u64::from(a == b)),
                Instruction::Less => self.operate(|a, b| u64::from(a < b)),
                Instruction::Jump(target) => at = target as usize,
                Instruction::JumpIf(target) => {
                    if self.pop() != 0 {
                        at = target as usize;
                    }
                }
                Instruction::JumpUnless(target) => {
                    if self.pop() == 0 {
                        at = target as usize;
                    }
                }
                Instruction::Load => {
                    let address = self.pop();
                    self.push(*self.memory.get(address as usize)?);
                }
                Instruction::Store => {
                    let address = self.pop();
                    *self.memory.get_mut(address as usize)? = self.pop();
                }
                Instruction::Call(target) => {
                    depth += 1;
                    *self.frames.get_mut(depth)? = Frame { back: at, ..Frame::default() };
                    at = target as usize;
                }
                Instruction::Return => {
                    at = self.frames[depth].back;
                    depth = depth.checked_sub(1)?;
                }
                Instruction::Halt => return Some(self.stack[self.used - 1]),
            }
        }
    }
}

/// Runs a program on a stack machine, whose instructions a match in a loop tells apart. The
/// program takes size turns.
#[no_mangle]
pub extern "C" fn interpreter(size: i32) -> u64 {
    let mut machine = Machine::new();
    machine.push(positive(size) as u64);
    let Some(result) = machine.run(PROGRAM) else { return 0 };
    machine.memory.iter().fold(mix(CHECKSUM_SEED, result), |checksum, cell| mix(checksum, *cell))
}

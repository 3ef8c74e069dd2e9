use Instruction::*;

/// What takes two values takes the upper one as its second: push a, push b, subtract is
/// a - b. Store finds the address above the value.
#[derive(Clone, Copy)]
pub enum Instruction {
    Push(u64),
    Dup,
    Swap,
    Drop,
    /// A local, as do the next two.
    Get(u8),
    Set(u8),
    Increment(u8),
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    Equal,
    Less,
    Jump(u32),
    JumpIf(u32),
    JumpUnless(u32),
    Load,
    Store,
    /// Begins with locals that are zero.
    Call(u32),
    Return,
    Halt,
}

/// Counts the steps of Collatz's sequences, finds common divisors by recursion, and writes to
/// memory what it has.
#[rustfmt::skip]
pub static PROGRAM: &[Instruction] = &[
    // main(limit), with 0: i, 1: total, 2: limit
    /*  0 */ Set(2), Push(1), Set(0),
    /*  3 */ Get(2), Get(0), Less, JumpIf(45),
    /*  7 */ Get(0), Call(47), Get(1), Add, Set(1),
    /* 12 */ Get(0), Push(360360), Call(71), Get(1), Xor, Set(1),
    /* 18 */ Get(1), Dup, Push(5), ShiftLeft, Swap, Push(59), ShiftRight, Or, Set(1),
    /* 27 */ Get(0), Push(7), Multiply, Push(255), And, Load, Get(1), Swap, Subtract, Set(1),
    /* 37 */ Get(0), Push(255), And, Get(1), Call(83), Drop,
    /* 43 */ Increment(0), Jump(3),
    /* 45 */ Get(1), Halt,
    // collatz(n): how many steps lead to 1; with 0: n, 1: the steps
    /* 47 */ Set(0),
    /* 48 */ Get(0), Push(1), Equal, JumpIf(69),
    /* 52 */ Increment(1), Get(0), Push(2), Remainder, JumpIf(62),
    /* 57 */ Get(0), Push(2), Divide, Set(0), Jump(48),
    /* 62 */ Get(0), Push(3), Multiply, Push(1), Add, Set(0), Jump(48),
    /* 69 */ Get(1), Return,
    // gcd(a, b), which calls itself; with 0: a, 1: b
    /* 71 */ Set(1), Set(0), Get(1), JumpUnless(81),
    /* 75 */ Get(1), Get(0), Get(1), Remainder, Call(71), Return,
    /* 81 */ Get(0), Return,
    // exchange(address, new) gives what was there; with 0: address, 1: new
    /* 83 */ Set(1), Set(0), Get(0), Load, Get(1), Get(0), Store, Return,
];

use crate::{mix, Random, CHECKSUM_SEED};

const DEPTH: u32 = 24;

/// Steps call each other through a table, which of them their state says.
type Step = fn(u32, u64) -> u64;

static STEPS: [Step; 4] = [once, twice, turned, behind];

fn next(depth: u32, state: u64) -> u64 {
    if depth == 0 {
        return state;
    }
    STEPS[(state >> 40 & 3) as usize](depth - 1, state)
}

fn once(depth: u32, state: u64) -> u64 {
    mix(next(depth, mix(state, 1)), u64::from(depth))
}

fn twice(depth: u32, state: u64) -> u64 {
    let first = next(depth, mix(state, 2));
    mix(first, next(depth, mix(state, 3)))
}

fn turned(depth: u32, state: u64) -> u64 {
    next(depth, state.rotate_left(13)) ^ state
}

fn behind(depth: u32, state: u64) -> u64 {
    mix(state, next(depth, mix(state, 4)))
}

/// Starts size times in a random state.
#[no_mangle]
pub extern "C" fn table(size: i32) -> u64 {
    let mut source = Random(18);
    (0..size).fold(CHECKSUM_SEED, |checksum, _| {
        mix(checksum, next(DEPTH, mix(CHECKSUM_SEED, u64::from(source.next()))))
    })
}

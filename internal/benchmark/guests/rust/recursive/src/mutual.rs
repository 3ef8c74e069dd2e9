use crate::{mix, CHECKSUM_SEED};

// Inlined into each other, the two would be one function that calls itself.
#[inline(never)]
fn female(n: u32) -> u32 {
    if n == 0 {
        return 1;
    }
    n - male(female(n - 1))
}

#[inline(never)]
fn male(n: u32) -> u32 {
    if n == 0 {
        return 0;
    }
    n - female(male(n - 1))
}

/// Computes Hofstadter's female and male sequences up to size. Each is defined by the other.
#[no_mangle]
pub extern "C" fn mutual(size: i32) -> u64 {
    (1..=size).fold(CHECKSUM_SEED, |checksum, n| {
        mix(mix(checksum, u64::from(female(n as u32))), u64::from(male(n as u32)))
    })
}

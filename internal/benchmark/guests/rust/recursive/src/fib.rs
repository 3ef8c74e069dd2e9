use crate::{mix, CHECKSUM_SEED};

fn visit(n: u32) -> u64 {
    if n < 2 {
        return u64::from(n);
    }
    mix(visit(n - 1), visit(n - 2))
}

/// Makes the calls of Fibonacci's recursion for size, and folds what they return.
#[no_mangle]
pub extern "C" fn fib(size: i32) -> u64 {
    if size < 1 {
        return CHECKSUM_SEED;
    }
    visit(size as u32)
}

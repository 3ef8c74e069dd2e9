use crate::{mix, positive, CHECKSUM_SEED};

/// Finds the primes below size.
#[no_mangle]
pub extern "C" fn sieve(size: i32) -> u64 {
    let n = positive(size);
    let mut composite = vec![false; n];
    let (mut count, mut sum) = (0, 0);
    for p in 2..n {
        if composite[p] {
            continue;
        }
        count += 1;
        sum += p as u64;
        for multiple in (2 * p..n).step_by(p) {
            composite[multiple] = true;
        }
    }
    mix(mix(CHECKSUM_SEED, count), sum)
}

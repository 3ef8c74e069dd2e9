use crate::{mix, CHECKSUM_SEED};

/// How many calls there were, and how deep they nest.
#[derive(Default)]
struct Calls {
    count: u64,
    depth: u32,
    deepest: u32,
}

impl Calls {
    /// What it does after the recursive call keeps a compiler from making a loop of that.
    fn value(&mut self, m: u32, n: u32) -> u32 {
        self.count += 1;
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        let value = match (m, n) {
            (0, n) => n + 1,
            (m, 0) => self.value(m - 1, 1),
            (m, n) => {
                let inner = self.value(m, n - 1);
                self.value(m - 1, inner)
            }
        };
        self.depth -= 1;
        value
    }
}

/// Computes Ackermann's function of 2 and size.
#[no_mangle]
pub extern "C" fn ackermann(size: i32) -> u64 {
    if size < 1 {
        return CHECKSUM_SEED;
    }
    let mut calls = Calls::default();
    let value = calls.value(2, size as u32);
    mix(mix(mix(CHECKSUM_SEED, u64::from(value)), calls.count), u64::from(calls.deepest))
}

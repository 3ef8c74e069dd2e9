//! What the kernels share.

/// A linear congruential generator with Knuth's MMIX constants.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 32) as u32
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        f64::from(self.next()) / 4294967296.0
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// Where every chain of `mix` begins.
pub const CHECKSUM_SEED: u64 = 14695981039346656037;

/// Folds a value into a checksum: FNV-1a over whole words.
pub fn mix(checksum: u64, value: u64) -> u64 {
    (checksum ^ value).wrapping_mul(1099511628211)
}

pub fn positive(size: i32) -> usize {
    size.max(0) as usize
}

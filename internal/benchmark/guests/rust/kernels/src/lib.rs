//! The compute kernels of the benchmarks in Rust. Each is exported under its name and
//! gives the checksum that its versions in Go and C give for the same size.

mod crc32;
mod fannkuch;
mod hash_map;
mod json;
mod json_parse;
mod levenshtein;
mod mandelbrot;
mod matrix;
mod nbody;
mod quicksort;
mod sha256;
mod sieve;
mod spin;

pub use crc32::crc32;
pub use fannkuch::fannkuch;
pub use hash_map::hash_map;
pub use json::json;
pub use levenshtein::levenshtein;
pub use mandelbrot::mandelbrot;
pub use matrix::matrix;
pub use nbody::nbody;
pub use quicksort::quicksort;
pub use sha256::sha256;
pub use sieve::sieve;
pub use spin::spin;

/// A linear congruential generator with Knuth's MMIX constants.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 32) as u32
    }

    /// A number in [0, 1).
    fn unit(&mut self) -> f64 {
        f64::from(self.next()) / 4294967296.0
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// Where every chain of `mix` begins.
const CHECKSUM_SEED: u64 = 14695981039346656037;

/// Folds a value into a checksum: FNV-1a over whole words.
fn mix(checksum: u64, value: u64) -> u64 {
    (checksum ^ value).wrapping_mul(1099511628211)
}

fn positive(size: i32) -> usize {
    size.max(0) as usize
}

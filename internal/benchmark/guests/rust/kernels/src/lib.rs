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
mod shared;
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

use shared::{mix, positive, Random, CHECKSUM_SEED};

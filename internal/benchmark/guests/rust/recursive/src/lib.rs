//! Compute kernels that recurse. Each is exported under its name and gives the checksum that
//! its versions in Go and C give for the same size.

mod ackermann;
mod evaluator;
mod fib;
mod mutual;
mod parser;
#[path = "../../kernels/src/shared.rs"]
#[allow(dead_code)] // what only the other kernels need
mod shared;
mod sort;
mod table;
mod tree_walk;

pub use ackermann::ackermann;
pub use evaluator::evaluator;
pub use fib::fib;
pub use mutual::mutual;
pub use parser::parser;
pub use sort::sort;
pub use table::table;
pub use tree_walk::tree_walk;

use shared::{mix, positive, Random, CHECKSUM_SEED};

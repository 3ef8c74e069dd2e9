//! Compute kernels that metering was not tuned on. Each is exported under its name and gives
//! the checksum that its versions in Go and C give for the same size.

mod expression;
mod expression_parse;
mod interpreter;
mod interpreter_program;
mod lz77;
mod regex;
mod regex_parse;
#[path = "../../kernels/src/shared.rs"]
#[allow(dead_code)] // what only the other kernels need
mod shared;

pub use expression::expression;
pub use interpreter::interpreter;
pub use lz77::lz77;
pub use regex::regex;

use shared::{mix, positive, Random, CHECKSUM_SEED};

//! The tool of the benchmarks, apart from how its input and output travel.

use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};

/// How many calls this instance served. It is memory, so that state which leaks from call
/// to call is seen in the answer.
static CALLS: AtomicU64 = AtomicU64::new(0);

#[derive(Deserialize)]
struct Input<'a> {
    #[serde(borrow)]
    text: std::borrow::Cow<'a, str>,
    nums: Vec<i64>,
}

#[derive(Serialize)]
struct Output {
    upper: String,
    sum: i64,
    calls: u64,
}

/// Answers one call.
pub fn handle(input: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let input: Input = serde_json::from_slice(input)?;
    serde_json::to_vec(&Output {
        upper: input.text.to_uppercase(),
        sum: input.nums.iter().fold(0, |sum, number| sum.wrapping_add(*number)),
        calls: CALLS.fetch_add(1, Ordering::Relaxed) + 1,
    })
}

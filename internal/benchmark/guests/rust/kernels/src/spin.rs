use crate::positive;

/// Size turns of the smallest loop whose every turn needs the turn before.
#[no_mangle]
pub extern "C" fn spin(size: i32) -> u64 {
    let turns = positive(size) as u64;
    let mut x = turns;
    for i in 0..turns {
        x = x.wrapping_mul(31).wrapping_add(i ^ (x >> 3));
    }
    x
}

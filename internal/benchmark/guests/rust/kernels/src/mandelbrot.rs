use crate::{mix, CHECKSUM_SEED};

/// After how many turns a point counts as one of the set.
const ESCAPE_LIMIT: u64 = 50;

fn escape_time(real: f64, imaginary: f64) -> u64 {
    let (mut x, mut y) = (0.0, 0.0);
    for turn in 0..ESCAPE_LIMIT {
        let (xx, yy) = (x * x, y * y);
        if xx + yy > 4.0 {
            return turn;
        }
        (x, y) = (xx - yy + real, 2.0 * x * y + imaginary);
    }
    ESCAPE_LIMIT
}

/// Counts, for size × size points, the turns until each escapes.
#[no_mangle]
pub extern "C" fn mandelbrot(size: i32) -> u64 {
    let mut checksum = CHECKSUM_SEED;
    for row in 0..size {
        for column in 0..size {
            let real = 2.5 * f64::from(column) / f64::from(size) - 2.0;
            let imaginary = 2.5 * f64::from(row) / f64::from(size) - 1.25;
            checksum = mix(checksum, escape_time(real, imaginary));
        }
    }
    checksum
}

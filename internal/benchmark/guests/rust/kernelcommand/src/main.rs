//! The kernels as a WASI command: kernelcommand NAME SIZE prints the checksum in 16
//! hexadecimal digits and the nanoseconds that the kernel took by the guest's own clock,
//! so that what starts and ends a program is not in the measure.

mod run;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run::run(find)
}

fn find(name: &str) -> Option<extern "C" fn(i32) -> u64> {
    Some(match name {
        "spin" => kernels::spin,
        "sha256" => kernels::sha256,
        "crc32" => kernels::crc32,
        "matrix" => kernels::matrix,
        "nbody" => kernels::nbody,
        "sieve" => kernels::sieve,
        "fannkuch" => kernels::fannkuch,
        "quicksort" => kernels::quicksort,
        "json" => kernels::json,
        "hash_map" => kernels::hash_map,
        "mandelbrot" => kernels::mandelbrot,
        "levenshtein" => kernels::levenshtein,
        _ => return None,
    })
}

use std::time::Instant;

/// Runs the kernel that the arguments name.
pub fn run(find: fn(&str) -> Option<extern "C" fn(i32) -> u64>) -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("usage: kernelcommand NAME SIZE")?;
    let size = arguments.next().ok_or("usage: kernelcommand NAME SIZE")?.parse()?;
    let kernel = find(&name).ok_or_else(|| format!("there is no kernel {name:?}"))?;
    let start = Instant::now();
    let checksum = kernel(size);
    let took = start.elapsed();
    println!("{checksum:016x} {}", took.as_nanos());
    Ok(())
}

//! The tool as a WASI command: arguments on stdin, the result on stdout.

use std::io::{Read, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input)?;
    let output = tool::handle(&input)?;
    std::io::stdout().write_all(&output)?;
    Ok(())
}

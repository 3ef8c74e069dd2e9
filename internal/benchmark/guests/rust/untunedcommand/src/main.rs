//! The kernels that metering was not tuned on as a WASI command, as kernelcommand is the
//! others.

#[path = "../../kernelcommand/src/run.rs"]
mod run;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run::run(find)
}

fn find(name: &str) -> Option<extern "C" fn(i32) -> u64> {
    Some(match name {
        "lz77" => untuned::lz77,
        "regex" => untuned::regex,
        "interpreter" => untuned::interpreter,
        "expression" => untuned::expression,
        _ => return None,
    })
}

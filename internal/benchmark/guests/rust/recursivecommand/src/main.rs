//! The kernels that recurse as a WASI command, as kernelcommand is the others.

#[path = "../../kernelcommand/src/run.rs"]
mod run;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run::run(find)
}

fn find(name: &str) -> Option<extern "C" fn(i32) -> u64> {
    Some(match name {
        "fib" => recursive::fib,
        "ackermann" => recursive::ackermann,
        "tree_walk" => recursive::tree_walk,
        "evaluator" => recursive::evaluator,
        "sort" => recursive::sort,
        "parser" => recursive::parser,
        "mutual" => recursive::mutual,
        "table" => recursive::table,
        _ => return None,
    })
}

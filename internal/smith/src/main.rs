//! Smith writes modules of wasm-smith's into a folder, N.wasm for each seed from FIRST on. They
//! import nothing, need no proposal beyond WebAssembly 2.0, and may loop for ever.
//!
//!   smith FOLDER FIRST COUNT

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use arbitrary::Unstructured;
use wasm_smith::{Config, Module};

/// The generator splitmix64, whose numbers are the choices that wasm-smith makes.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> usize {
        (self.next() % limit) as usize
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count.div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).collect()
    }
}

/// A module that exports functions which take and return nothing, as a host calls them. Those
/// that are made have the same exports.
fn functions(count: u8) -> Vec<u8> {
    let section = |id: u8, content: Vec<u8>| [vec![id, content.len() as u8], content].concat();
    let each = |one: &dyn Fn(u8) -> Vec<u8>| [vec![count], (0..count).flat_map(one).collect()].concat();
    [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, vec![1, 0x60, 0, 0]),
        section(3, each(&|_| vec![0])),
        section(7, each(&|n| vec![1, b'a' + n, 0, n])),
        section(10, each(&|_| vec![2, 0, 0x0b])),
    ]
    .concat()
}

fn config(random: &mut Random) -> Config {
    Config {
        max_imports: 0,
        max_tags: 0,
        min_funcs: 1,
        max_funcs: 1 + random.below(20),
        max_exports: 20,
        max_instructions: 10 + random.below(400),
        max_nesting_depth: 2 + random.below(30),
        max_memories: 1,
        max_memory32_bytes: 1 << 20,
        max_tables: 1 + random.below(3),
        max_table_elements: 1000,
        exports: Some(functions(1 + random.below(8) as u8)),
        exceptions_enabled: false,
        gc_enabled: false,
        compact_imports_enabled: false,
        memory64_enabled: false,
        relaxed_simd_enabled: false,
        tail_call_enabled: false,
        threads_enabled: false,
        wide_arithmetic_enabled: false,
        extended_const_enabled: false,
        ..Config::default()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().collect();
    let [_, folder, first, count] = &arguments[..] else {
        return Err("usage: smith FOLDER FIRST COUNT".into());
    };
    let (first, count): (u64, u64) = (first.parse()?, count.parse()?);
    fs::create_dir_all(folder)?;
    for seed in first..first + count {
        let mut random = Random(seed);
        let config = config(&mut random);
        let length = 500 + random.below(20_000);
        let choices = random.bytes(length);
        let module = Module::new(config, &mut Unstructured::new(&choices))?;
        fs::write(Path::new(folder).join(format!("{seed}.wasm")), module.to_bytes())?;
    }
    Ok(())
}

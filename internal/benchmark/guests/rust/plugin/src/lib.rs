//! The tool as an Extism plug-in, its calling convention written out by hand.

#[link(wasm_import_module = "extism:host/env")]
extern "C" {
    fn input_length() -> u64;
    fn input_load_u8(offset: u64) -> u32;
    fn input_load_u64(offset: u64) -> u64;
    fn alloc(length: u64) -> u64;
    fn store_u8(offset: u64, value: u32);
    fn store_u64(offset: u64, value: u64);
    fn output_set(offset: u64, length: u64);
    fn error_set(offset: u64);
}

fn input() -> Vec<u8> {
    // SAFETY: the host checks the offsets, which stay below the length that it gave.
    unsafe {
        let length = input_length();
        let mut bytes = Vec::with_capacity(length as usize);
        let words = length / 8 * 8;
        for offset in (0..words).step_by(8) {
            bytes.extend_from_slice(&input_load_u64(offset).to_le_bytes());
        }
        for offset in words..length {
            bytes.push(input_load_u8(offset) as u8);
        }
        bytes
    }
}

/// Copies bytes to the host's memory and returns where they are.
fn store(bytes: &[u8]) -> u64 {
    // SAFETY: the block has the length of the bytes.
    unsafe {
        let block = alloc(bytes.len() as u64);
        let mut offset = block;
        let mut words = bytes.chunks_exact(8);
        for word in words.by_ref() {
            let mut whole = [0; 8];
            whole.copy_from_slice(word);
            store_u64(offset, u64::from_le_bytes(whole));
            offset += 8;
        }
        for byte in words.remainder() {
            store_u8(offset, u32::from(*byte));
            offset += 1;
        }
        block
    }
}

/// Answers one call: 0, or 1 with an error set.
#[no_mangle]
pub extern "C" fn call() -> i32 {
    match tool::handle(&input()) {
        Ok(output) => {
            let block = store(&output);
            // SAFETY: the block was allocated with this length.
            unsafe { output_set(block, output.len() as u64) };
            0
        }
        Err(error) => {
            let block = store(error.to_string().as_bytes());
            // SAFETY: the block was allocated by the host.
            unsafe { error_set(block) };
            1
        }
    }
}

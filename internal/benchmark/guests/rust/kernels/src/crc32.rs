use crate::Random;

fn table() -> [u32; 256] {
    let mut table = [0; 256];
    for (i, entry) in table.iter_mut().enumerate() {
        let mut crc = i as u32;
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb88320 } else { crc >> 1 };
        }
        *entry = crc;
    }
    table
}

/// Size passes of the IEEE checksum over one block of 64 KiB, a table look-up a byte.
#[no_mangle]
pub extern "C" fn crc32(size: i32) -> u64 {
    let table = table();
    let block = Random(2).bytes(64 << 10);
    let mut crc = !0u32;
    for _ in 0..size {
        for byte in &block {
            crc = table[usize::from(crc as u8 ^ byte)] ^ crc >> 8;
        }
    }
    u64::from(!crc)
}

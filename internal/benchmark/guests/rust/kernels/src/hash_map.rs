use crate::{mix, positive, Random, CHECKSUM_SEED};
use std::fmt::Write;

#[derive(Clone, Default)]
struct Slot {
    /// Empty: free.
    key: String,
    hash: u64,
    count: u64,
}

/// Counts strings: open addressing with linear probing. Its length is a power of two.
struct Table {
    slots: Vec<Slot>,
    used: usize,
}

fn hash_of(key: &str) -> u64 {
    let hash = key.bytes().fold(CHECKSUM_SEED, |hash, byte| mix(hash, u64::from(byte)));
    hash ^ hash >> 32
}

impl Table {
    /// Returns where the key is, or the free slot where it belongs.
    fn find(&self, key: &str, hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut i = hash as usize & mask;
        loop {
            let slot = &self.slots[i];
            if slot.key.is_empty() || slot.hash == hash && slot.key == key {
                return i;
            }
            i = (i + 1) & mask;
        }
    }

    fn count(&self, key: &str) -> u64 {
        self.slots[self.find(key, hash_of(key))].count
    }

    fn add(&mut self, key: &str) {
        if 4 * (self.used + 1) > 3 * self.slots.len() {
            self.grow();
        }
        let hash = hash_of(key);
        let at = self.find(key, hash);
        let slot = &mut self.slots[at];
        if slot.key.is_empty() {
            slot.key = key.to_owned();
            slot.hash = hash;
            self.used += 1;
        }
        slot.count += 1;
    }

    fn grow(&mut self) {
        let doubled = vec![Slot::default(); 2 * self.slots.len()];
        let old = std::mem::replace(&mut self.slots, doubled);
        let mask = self.slots.len() - 1;
        for slot in old {
            if slot.key.is_empty() {
                continue;
            }
            let mut i = slot.hash as usize & mask;
            while !self.slots[i].key.is_empty() {
                i = (i + 1) & mask;
            }
            self.slots[i] = slot;
        }
    }
}

fn write_name(name: &mut String, number: u32) -> std::fmt::Result {
    name.clear();
    write!(name, "name/{number}")
}

fn run(n: u32) -> Result<u64, std::fmt::Error> {
    let mut source = Random(7);
    let mut counts = Table { slots: vec![Slot::default(); 16], used: 0 };
    let mut name = String::new();
    for _ in 0..n {
        write_name(&mut name, source.next() % n)?;
        counts.add(&name);
    }
    let mut checksum = CHECKSUM_SEED;
    for _ in 0..2 * n {
        write_name(&mut name, source.next() % n)?;
        checksum = mix(checksum, counts.count(&name));
    }
    Ok(mix(checksum, counts.used as u64))
}

/// Counts size random names, then looks up twice as many.
#[no_mangle]
pub extern "C" fn hash_map(size: i32) -> u64 {
    run(positive(size) as u32).unwrap_or(0)
}

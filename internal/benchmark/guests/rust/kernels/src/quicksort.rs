use crate::{mix, positive, Random, CHECKSUM_SEED};

#[derive(Clone, Copy)]
struct Record {
    key: u32,
    index: u32,
}

type Comparison = fn(&Record, &Record) -> bool;

/// Orders by key, and records of one key as they stood.
fn before(a: &Record, b: &Record) -> bool {
    if a.key != b.key {
        return a.key < b.key;
    }
    a.index < b.index
}

fn sort(records: &mut [Record], before: Comparison) {
    if records.len() < 2 {
        return;
    }
    let pivot = records[records.len() / 2];
    // Of half-open ranges, so that an index never is below zero.
    let (mut low, mut end) = (0, records.len());
    while low < end {
        while before(&records[low], &pivot) {
            low += 1;
        }
        while before(&pivot, &records[end - 1]) {
            end -= 1;
        }
        if low < end {
            records.swap(low, end - 1);
            low += 1;
            end -= 1;
        }
    }
    sort(&mut records[..end], before);
    sort(&mut records[low..], before);
}

/// Sorts size random records by a comparison function; the checksum is of their order.
#[no_mangle]
pub extern "C" fn quicksort(size: i32) -> u64 {
    let mut source = Random(5);
    let mut records: Vec<Record> =
        (0..positive(size)).map(|i| Record { key: source.next() >> 12, index: i as u32 }).collect();
    sort(&mut records, before);
    records
        .iter()
        .fold(CHECKSUM_SEED, |checksum, r| mix(checksum, u64::from(r.key) << 32 | u64::from(r.index)))
}

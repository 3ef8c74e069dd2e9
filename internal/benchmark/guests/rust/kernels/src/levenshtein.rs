use crate::{mix, positive, Random, CHECKSUM_SEED};

fn random_word(source: &mut Random, length: usize) -> Vec<u8> {
    (0..length).map(|_| b'a' + (source.next() >> 30) as u8).collect()
}

fn distance(a: &[u8], b: &[u8]) -> u32 {
    // row[j]: the distance of a's read part and b[..j]
    let mut row: Vec<u32> = (0..=b.len() as u32).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i as u32 + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = diagonal + u32::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// The edit distance of two random words of size letters out of four.
#[no_mangle]
pub extern "C" fn levenshtein(size: i32) -> u64 {
    let mut source = Random(8);
    let (a, b) = (random_word(&mut source, positive(size)), random_word(&mut source, positive(size)));
    mix(CHECKSUM_SEED, u64::from(distance(&a, &b)))
}

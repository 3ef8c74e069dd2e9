use crate::{mix, positive, Random, CHECKSUM_SEED};

/// How far back a match may begin.
const WINDOW: usize = 1 << 15;
const HASH_BITS: u32 = 13;
/// In letters, which the hash is of.
const SHORTEST: usize = 4;
const LONGEST: usize = 258;
/// Earlier places that are compared.
const TRIES: usize = 16;

fn separator(number: u32) -> u8 {
    match number {
        0..=15 => b'\n',
        16..=47 => b',',
        _ => b' ',
    }
}

/// Makes a text out of a few hundred words, of which some are frequent.
fn write_text(length: usize) -> Vec<u8> {
    let mut source = Random(9);
    let words: Vec<Vec<u8>> = (0..256)
        .map(|_| {
            let letters = 2 + source.next() % 8;
            (0..letters).map(|_| b'a' + (source.next() % 26) as u8).collect()
        })
        .collect();
    let mut text = Vec::with_capacity(length);
    while text.len() < length {
        let number = source.next();
        let word = &words[(number & (number >> 8) & 255) as usize];
        text.extend_from_slice(&word[..word.len().min(length - text.len())]);
        if text.len() < length {
            text.push(separator(number >> 24));
        }
    }
    text
}

fn write_leb128(packed: &mut Vec<u8>, mut number: usize) {
    while number > 127 {
        packed.push(number as u8 | 128);
        number >>= 7;
    }
    packed.push(number as u8);
}

/// Finds earlier places by a hash of the letters there.
struct Packer<'a> {
    text: &'a [u8],
    packed: Vec<u8>,
    /// By hash: the last place.
    newest: Vec<Option<u32>>,
    /// By place within the window: the one before with the same hash.
    older: Vec<Option<u32>>,
}

impl Packer<'_> {
    fn hash(&self, at: usize) -> usize {
        let mut letters = [0; SHORTEST];
        letters.copy_from_slice(&self.text[at..at + SHORTEST]);
        (u32::from_le_bytes(letters).wrapping_mul(2654435761) >> (32 - HASH_BITS)) as usize
    }

    /// Notes a place for later matches.
    fn enter(&mut self, at: usize) {
        if at + SHORTEST > self.text.len() {
            return;
        }
        let hash = self.hash(at);
        self.older[at % WINDOW] = self.newest[hash].replace(at as u32);
    }

    /// Returns the length and the distance of the longest match, and of several the nearest.
    fn longest(&self, at: usize) -> (usize, usize) {
        let limit = (self.text.len() - at).min(LONGEST);
        let mut longest = (0, 0);
        let mut next = self.newest[self.hash(at)];
        for _ in 0..TRIES {
            let Some(candidate) = next.map(|place| place as usize) else { break };
            if at - candidate >= WINDOW {
                break;
            }
            let (earlier, here) = (&self.text[candidate..candidate + limit], &self.text[at..at + limit]);
            let same = earlier.iter().zip(here).take_while(|(a, b)| a == b).count();
            if same > longest.0 {
                longest = (same, at - candidate);
            }
            next = self.older[candidate % WINDOW];
        }
        longest
    }

    fn literals(&mut self, start: usize, end: usize) {
        write_leb128(&mut self.packed, end - start);
        self.packed.extend_from_slice(&self.text[start..end]);
    }
}

/// Writes, in turns, letters that stand for themselves after their number, and a match: its
/// length beyond the shortest, and how far back it begins. Numbers are LEB128.
fn pack(text: &[u8]) -> Vec<u8> {
    let mut packer =
        Packer { text, packed: Vec::new(), newest: vec![None; 1 << HASH_BITS], older: vec![None; WINDOW] };
    // Where the letters begin that no match covers.
    let mut plain = 0;
    let mut at = 0;
    while at + SHORTEST <= text.len() {
        let (length, distance) = packer.longest(at);
        if length < SHORTEST {
            packer.enter(at);
            at += 1;
            continue;
        }
        packer.literals(plain, at);
        write_leb128(&mut packer.packed, length - SHORTEST);
        write_leb128(&mut packer.packed, distance);
        for covered in at..at + length {
            packer.enter(covered);
        }
        at += length;
        plain = at;
    }
    packer.literals(plain, text.len());
    packer.packed
}

/// Reads at most 28 bits, more than any number of ours has, from the front of packed.
fn read_leb128(packed: &mut &[u8]) -> Option<usize> {
    let mut value = 0;
    for shift in (0..28).step_by(7) {
        let (&byte, rest) = packed.split_first()?;
        *packed = rest;
        value |= usize::from(byte & 127) << shift;
        if byte < 128 {
            return Some(value);
        }
    }
    None
}

/// Reads what pack wrote, and refuses anything else.
fn unpack(mut packed: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        let count = read_leb128(&mut packed)?;
        if count > packed.len() {
            return None;
        }
        let (literals, rest) = packed.split_at(count);
        text.extend_from_slice(literals);
        packed = rest;
        if packed.is_empty() {
            return Some(text);
        }
        let length = read_leb128(&mut packed).filter(|length| *length <= LONGEST - SHORTEST)?;
        let distance = read_leb128(&mut packed).filter(|distance| (1..=text.len()).contains(distance))?;
        // Letter by letter: a match may overlap what it makes.
        for _ in 0..length + SHORTEST {
            text.push(text[text.len() - distance]);
        }
    }
}

/// Packs a text of size letters and unpacks it again.
#[no_mangle]
pub extern "C" fn lz77(size: i32) -> u64 {
    let text = write_text(positive(size));
    let packed = pack(&text);
    if unpack(&packed) != Some(text) {
        return 0;
    }
    let checksum = mix(CHECKSUM_SEED, packed.len() as u64);
    packed.iter().fold(checksum, |checksum, byte| mix(checksum, u64::from(*byte)))
}

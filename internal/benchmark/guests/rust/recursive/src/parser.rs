use crate::{mix, Random, CHECKSUM_SEED};

const DEPTH: u32 = 6;
/// Of each text.
const READS: usize = 8;

/// Writes a random text.
fn append_sum(text: &mut String, source: &mut Random, depth: u32) {
    let kind = (source.next() >> 16) % 16;
    if depth == 0 || kind == 0 {
        text.push_str(&((source.next() >> 8) % 1000).to_string());
        return;
    }
    if kind >= 14 {
        text.push('-');
        return append_sum(text, source, depth - 1);
    }
    if kind < 7 {
        text.push('(');
    }
    append_sum(text, source, depth - 1);
    let operator = (source.next() >> 16) % 3;
    text.push(char::from(b"+-*"[operator as usize]));
    append_sum(text, source, depth - 1);
    if kind < 7 {
        text.push(')');
    }
}

/// Reads a text that is known to be right. Numbers wrap around.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn sum(&mut self) -> i64 {
        let mut value = self.product();
        loop {
            match self.peek() {
                Some(b'+') => {
                    self.at += 1;
                    value = value.wrapping_add(self.product());
                }
                Some(b'-') => {
                    self.at += 1;
                    value = value.wrapping_sub(self.product());
                }
                _ => return value,
            }
        }
    }

    fn product(&mut self) -> i64 {
        let mut value = self.factor();
        while self.peek() == Some(b'*') {
            self.at += 1;
            value = value.wrapping_mul(self.factor());
        }
        value
    }

    fn factor(&mut self) -> i64 {
        match self.peek() {
            Some(b'-') => {
                self.at += 1;
                return self.factor().wrapping_neg();
            }
            Some(b'(') => {
                self.at += 1;
                let value = self.sum();
                self.at += 1;
                return value;
            }
            _ => {}
        }
        let mut value = 0i64;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            value = value * 10 + i64::from(digit - b'0');
            self.at += 1;
        }
        value
    }
}

/// Writes size arithmetic texts, and works each out several times as it reads it by recursive
/// descent.
#[no_mangle]
pub extern "C" fn parser(size: i32) -> u64 {
    let mut source = Random(17);
    let mut checksum = CHECKSUM_SEED;
    let mut text = String::new();
    for _ in 0..size {
        text.clear();
        append_sum(&mut text, &mut source, DEPTH);
        for _ in 0..READS {
            let mut reader = Reader { text: text.as_bytes(), at: 0 };
            checksum = mix(checksum, reader.sum() as u64);
        }
    }
    checksum
}

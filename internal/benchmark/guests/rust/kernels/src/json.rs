use crate::json_parse::{Kind, Parser, NONE};
use crate::{mix, Random, CHECKSUM_SEED};
use std::fmt::Write;

/// Makes a text that holds every kind of value.
fn write_json(size: i32) -> Result<String, std::fmt::Error> {
    let mut source = Random(6);
    let mut text = String::from("[");
    for i in 0..size {
        if i > 0 {
            text.push_str(",\n ");
        }
        let (name, whole, fraction) = (source.next() % 100000, source.next() % 1000, source.next() % 1000);
        write!(text, r#"{{"id": {i}, "name": "user \"{name}\" caf\u00e9\n", "tags": ["red", "", "green"], "#)?;
        write!(text, r#""score": -{whole}.{fraction}, "active": true, "parent": null, "#)?;
        write!(text, r#""place": {{"x": {}, "y": [0, [], {{}}], "open": false}}}}"#, source.next())?;
    }
    text.push(']');
    Ok(text)
}

/// Folds the value and everything below it into a checksum.
fn walk(parser: &Parser, mut checksum: u64, at: u32) -> u64 {
    let value = &parser.values[at as usize];
    checksum = mix(checksum, value.kind as u64);
    match value.kind {
        Kind::Number => checksum = mix(checksum, value.number.to_bits()),
        Kind::String => {
            for byte in &parser.strings[value.start as usize..value.end as usize] {
                checksum = mix(checksum, u64::from(*byte));
            }
        }
        _ => {}
    }
    let mut child = value.child;
    while child != NONE {
        checksum = walk(parser, checksum, child);
        child = parser.values[child as usize].next;
    }
    checksum
}

/// Writes a text of size records, parses it into a tree and walks the tree.
#[no_mangle]
pub extern "C" fn json(size: i32) -> u64 {
    let Ok(text) = write_json(size) else { return 0 };
    let mut parser = Parser::new(text.as_bytes());
    match parser.document() {
        Some(root) => walk(&parser, CHECKSUM_SEED, root),
        None => 0,
    }
}

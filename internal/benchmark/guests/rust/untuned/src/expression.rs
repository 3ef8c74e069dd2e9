use crate::expression_parse::{parse, Variables};
use crate::{mix, Random, CHECKSUM_SEED};

const DEPTH: u32 = 6;
/// Of values for the variables.
const ROWS: usize = 32;

/// Makes random formulas.
struct Writer<'a> {
    text: String,
    source: &'a mut Random,
}

impl Writer<'_> {
    fn formula(&mut self, depth: u32) {
        let kind = (self.source.next() >> 16) % 16;
        if depth == 0 {
            return self.leaf();
        }
        match kind {
            0 => self.leaf(),
            1..=6 => self.operation(depth - 1),
            7..=11 => {
                self.text.push('(');
                self.operation(depth - 1);
                self.text.push(')');
            }
            12 => {
                self.text.push('-');
                self.call("abs", 1, depth - 1);
            }
            13 => self.call("min", 2, depth - 1),
            14 => self.call("max", 2, depth - 1),
            _ => self.call("if", 3, depth - 1),
        }
    }

    fn leaf(&mut self) {
        let number = self.source.next() >> 8;
        if number % 2 == 0 {
            self.text.push(char::from(b'a' + (number / 2 % 4) as u8));
        } else {
            self.text.push_str(&(number / 2 % 1000).to_string());
        }
    }

    fn operation(&mut self, depth: u32) {
        self.formula(depth);
        self.text.push(' ');
        let operator = (self.source.next() >> 16) % 9;
        self.text.push(char::from(b"++--**/%<"[operator as usize]));
        self.text.push(' ');
        self.formula(depth);
    }

    fn call(&mut self, name: &str, arguments: usize, depth: u32) {
        self.text.push_str(name);
        self.text.push('(');
        for i in 0..arguments {
            if i > 0 {
                self.text.push_str(", ");
            }
            self.formula(depth);
        }
        self.text.push(')');
    }
}

/// Writes size formulas, parses each and works it out for several rows of values.
#[no_mangle]
pub extern "C" fn expression(size: i32) -> u64 {
    let mut source = Random(11);
    let mut checksum = CHECKSUM_SEED;
    for _ in 0..size {
        let mut writer = Writer { text: String::new(), source: &mut source };
        writer.formula(DEPTH);
        let Some(formula) = parse(&writer.text) else { return 0 };
        for _ in 0..ROWS {
            let variables: Variables = std::array::from_fn(|_| i64::from(source.next() % 2000) - 1000);
            checksum = mix(checksum, formula.value(&variables) as u64);
        }
    }
    checksum
}

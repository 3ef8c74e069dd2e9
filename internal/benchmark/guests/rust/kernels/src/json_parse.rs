/// The kinds of values, numbered alike in every language.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Null = 1,
    False,
    True,
    Number,
    String,
    Array,
    Object,
}

/// No value: index 0 of the arena is not used.
pub const NONE: u32 = 0;

/// A node of the tree. An object's members are its children, in pairs.
pub struct Value {
    pub kind: Kind,
    pub number: f64,
    /// Where a string's bytes are in `Parser::strings`.
    pub start: u32,
    pub end: u32,
    /// Indices in `Parser::values`.
    pub child: u32,
    pub next: u32,
}

impl Value {
    fn of(kind: Kind) -> Value {
        Value { kind, number: 0.0, start: 0, end: 0, child: NONE, next: NONE }
    }
}

/// Reads one text into an arena of values. It takes JSON but for surrogate pairs and exponents.
pub struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    pub values: Vec<Value>,
    pub strings: Vec<u8>,
}

impl<'a> Parser<'a> {
    pub fn new(text: &'a [u8]) -> Parser<'a> {
        Parser { text, at: 0, values: vec![Value::of(Kind::Null)], strings: Vec::new() }
    }

    pub fn document(&mut self) -> Option<u32> {
        let root = self.value()?;
        self.space();
        (self.at == self.text.len()).then_some(root)
    }

    fn add(&mut self, value: Value) -> u32 {
        self.values.push(value);
        self.values.len() as u32 - 1
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Skips white space and consumes one wanted byte.
    fn take(&mut self, wanted: u8) -> bool {
        self.space();
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self) -> Option<u32> {
        self.space();
        match self.peek()? {
            b'{' => self.list(Kind::Object, b'}'),
            b'[' => self.list(Kind::Array, b']'),
            b'"' => self.string(),
            b'n' => self.word(b"null", Kind::Null),
            b'f' => self.word(b"false", Kind::False),
            b't' => self.word(b"true", Kind::True),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &[u8], kind: Kind) -> Option<u32> {
        if !self.text[self.at..].starts_with(word) {
            return None;
        }
        self.at += word.len();
        Some(self.add(Value::of(kind)))
    }

    /// Reads an array, or an object as an array of names and values in turn.
    fn list(&mut self, kind: Kind, closing: u8) -> Option<u32> {
        self.at += 1;
        let list = self.add(Value::of(kind));
        if self.take(closing) {
            return Some(list);
        }
        let mut last = NONE;
        loop {
            if kind == Kind::Object {
                self.space();
                if self.peek()? != b'"' {
                    return None;
                }
                let name = self.string()?;
                if !self.take(b':') {
                    return None;
                }
                last = self.link(list, last, name);
            }
            let item = self.value()?;
            last = self.link(list, last, item);
            if self.take(closing) {
                return Some(list);
            }
            if !self.take(b',') {
                return None;
            }
        }
    }

    /// Puts an item behind the last of its list and returns the item, the new last.
    fn link(&mut self, list: u32, last: u32, item: u32) -> u32 {
        if last == NONE {
            self.values[list as usize].child = item;
        } else {
            self.values[last as usize].next = item;
        }
        item
    }

    fn number(&mut self) -> Option<u32> {
        let negative = self.peek()? == b'-';
        self.at += usize::from(negative);
        let (mut mantissa, mut scale, mut digits, mut fraction) = (0.0, 1.0, 0, false);
        while let Some(byte) = self.peek() {
            if byte == b'.' && !fraction && digits > 0 {
                fraction = true;
            } else if byte.is_ascii_digit() {
                mantissa = mantissa * 10.0 + f64::from(byte - b'0');
                if fraction {
                    scale *= 10.0;
                }
                digits += 1;
            } else {
                break;
            }
            self.at += 1;
        }
        if digits == 0 {
            return None;
        }
        let number = if negative { -mantissa } else { mantissa } / scale;
        Some(self.add(Value { number, ..Value::of(Kind::Number) }))
    }

    fn string(&mut self) -> Option<u32> {
        self.at += 1;
        let start = self.strings.len() as u32;
        loop {
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b'"' => {
                    let end = self.strings.len() as u32;
                    return Some(self.add(Value { start, end, ..Value::of(Kind::String) }));
                }
                b'\\' => self.escape()?,
                0..=0x1f => return None,
                _ => self.strings.push(byte),
            }
        }
    }

    /// Reads what follows a backslash.
    fn escape(&mut self) -> Option<()> {
        let byte = self.peek()?;
        self.at += 1;
        let meant = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.code_point(),
            _ => return None,
        };
        self.strings.push(meant);
        Some(())
    }

    fn code_point(&mut self) -> Option<()> {
        let mut point = 0;
        for digit in self.text.get(self.at..self.at + 4)? {
            point = point << 4 | char::from(*digit).to_digit(16)?;
        }
        self.at += 4;
        let mut room = [0; 4];
        let encoded = char::from_u32(point)?.encode_utf8(&mut room);
        self.strings.extend_from_slice(encoded.as_bytes());
        Some(())
    }
}

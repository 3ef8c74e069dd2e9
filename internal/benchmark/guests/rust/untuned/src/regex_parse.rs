/// A compiled pattern: a machine that may be in several states at once.
#[derive(Default)]
pub struct Regex {
    pub program: Vec<State>,
    pub classes: Vec<ByteSet>,
}

pub type ByteSet = [u64; 4];

/// What reads a byte leads to the next state.
#[derive(Clone, Copy)]
pub enum State {
    Match,
    Byte(u8),
    /// One of a set of bytes.
    Class(usize),
    Any,
    /// How far.
    Jump(i32),
    /// How far, one way and the other.
    Split(i32, i32),
}

/// Turns a pattern into states by recursive descent. Distances are relative, so that what
/// was made can be moved. It is for patterns that are known to be right.
struct Parser<'a> {
    pattern: &'a [u8],
    made: Regex,
}

pub fn compile(pattern: &str) -> Regex {
    let mut parser = Parser { pattern: pattern.as_bytes(), made: Regex::default() };
    parser.alternatives();
    parser.emit(State::Match);
    parser.made
}

impl Parser<'_> {
    fn emit(&mut self, state: State) {
        self.made.program.push(state);
    }

    fn insert(&mut self, at: usize, state: State) {
        self.made.program.insert(at, state);
    }

    fn length(&self) -> usize {
        self.made.program.len()
    }

    fn next(&mut self) -> u8 {
        let byte = self.pattern[0];
        self.pattern = &self.pattern[1..];
        byte
    }

    /// Reads the byte if it is the next.
    fn accept(&mut self, byte: u8) -> bool {
        let is_next = self.pattern.first() == Some(&byte);
        if is_next {
            self.pattern = &self.pattern[1..];
        }
        is_next
    }

    fn alternatives(&mut self) {
        let start = self.length();
        while !matches!(self.pattern.first(), None | Some(b'|' | b')')) {
            self.repeated();
        }
        if !self.accept(b'|') {
            return;
        }
        self.insert(start, State::Split(1, (self.length() - start + 2) as i32));
        let jump = self.length();
        self.emit(State::Jump(0));
        self.alternatives();
        self.made.program[jump] = State::Jump((self.length() - jump) as i32);
    }

    /// Reads one thing and how often it may stand.
    fn repeated(&mut self) {
        let start = self.length();
        self.single();
        let length = (self.length() - start) as i32;
        if self.accept(b'*') {
            self.insert(start, State::Split(1, length + 2));
            self.emit(State::Jump(-(length + 1)));
        } else if self.accept(b'+') {
            self.emit(State::Split(-length, 1));
        } else if self.accept(b'?') {
            self.insert(start, State::Split(1, length + 1));
        }
    }

    fn single(&mut self) {
        match self.next() {
            b'(' => {
                self.alternatives();
                self.accept(b')');
            }
            b'[' => self.class(),
            b'.' => self.emit(State::Any),
            b'\\' => {
                let byte = self.next();
                self.emit(State::Byte(byte));
            }
            byte => self.emit(State::Byte(byte)),
        }
    }

    /// Reads single bytes and ranges.
    fn class(&mut self) {
        let mut set = ByteSet::default();
        while !self.accept(b']') {
            let first = self.next();
            let last = if self.accept(b'-') { self.next() } else { first };
            for byte in first..=last {
                set[usize::from(byte >> 6)] |= 1 << (byte & 63);
            }
        }
        self.emit(State::Class(self.made.classes.len()));
        self.made.classes.push(set);
    }
}

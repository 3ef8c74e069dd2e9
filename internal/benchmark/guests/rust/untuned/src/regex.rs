use crate::regex_parse::{compile, Regex, State};
use crate::{mix, Random, CHECKSUM_SEED};
use std::fmt::Write;

/// The patterns that each line of the log is searched for.
const PATTERNS: [&str; 4] = [
    "[0-9]+-[0-9]+-[0-9]+T[0-9:]+",
    "(GET|POST|PUT|DELETE) (/[a-z]+)*/[0-9]+",
    r"[a-z][a-z.]*@[a-z]+(\.[a-z]+)+",
    "(a|ab|abc)*(d|e)?=.*ms",
];

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "DELETE", "PATCH"];
const PATHS: [&str; 4] = ["/", "/users/", "/users/orders/", "/static"];
const NAMES: [&str; 4] = ["ann", "bob.b", "cab", "dee.e.f"];
const KEYS: [&str; 4] = ["abd", "abcabe", "took", "a"];

fn pick<'a>(source: &mut Random, from: &[&'a str]) -> &'a str {
    from[source.next() as usize % from.len()]
}

/// Makes lines of which each pattern matches some.
fn write_log(size: i32) -> Result<String, std::fmt::Error> {
    let mut source = Random(10);
    let mut text = String::new();
    for _ in 0..size {
        let (month, day) = (source.next() % 13, source.next() % 32);
        let (hour, minute) = (source.next() % 24, source.next() % 60);
        write!(text, "2026-{month}-{day}T{hour}:{minute} ")?;
        let (method, path) = (pick(&mut source, &METHODS), pick(&mut source, &PATHS));
        write!(text, "{method} {path}{} ", source.next() % 10000)?;
        let (user, host) = (pick(&mut source, &NAMES), pick(&mut source, &NAMES));
        let key = pick(&mut source, &KEYS);
        writeln!(text, "{user}@mail.{host} {key}={}ms", source.next() % 1000)?;
    }
    Ok(text)
}

#[derive(Clone, Copy)]
struct Thread {
    state: usize,
    start: usize,
}

/// Holds states in the order in which they were added: the earlier the match began, the
/// earlier.
struct StateSet {
    threads: Vec<Thread>,
    /// By state: where threads has it, if it has.
    place: Vec<usize>,
}

impl StateSet {
    fn new(states: usize) -> StateSet {
        StateSet { threads: Vec::with_capacity(states), place: vec![0; states] }
    }

    fn has(&self, state: usize) -> bool {
        self.threads.get(self.place[state]).is_some_and(|thread| thread.state == state)
    }

    /// Adds a state, or those that it leads to without reading.
    fn follow(&mut self, regex: &Regex, state: usize, start: usize) {
        if self.has(state) {
            return;
        }
        self.place[state] = self.threads.len();
        self.threads.push(Thread { state, start });
        match regex.program[state] {
            State::Jump(far) => self.follow(regex, state.wrapping_add_signed(far as isize), start),
            State::Split(one, other) => {
                self.follow(regex, state.wrapping_add_signed(one as isize), start);
                self.follow(regex, state.wrapping_add_signed(other as isize), start);
            }
            _ => {}
        }
    }
}

/// Runs a pattern over lines. It is in a set of states at a time, so it never goes back in a
/// line.
struct Matcher {
    regex: Regex,
    current: StateSet,
    next: StateSet,
}

impl Matcher {
    fn new(regex: Regex) -> Matcher {
        let states = regex.program.len();
        Matcher { regex, current: StateSet::new(states), next: StateSet::new(states) }
    }

    /// Finds the leftmost match from a place on, and of those the longest: where it starts
    /// and ends.
    fn first(&mut self, line: &[u8], from: usize) -> Option<(usize, usize)> {
        let mut found: Option<(usize, usize)> = None;
        self.current.threads.clear();
        for at in from.. {
            if found.is_none() {
                self.current.follow(&self.regex, 0, at);
            }
            if self.current.threads.is_empty() {
                break;
            }
            self.next.threads.clear();
            for &Thread { state, start } in &self.current.threads {
                if found.is_some_and(|(first, _)| start > first) {
                    break;
                }
                let now = self.regex.program[state];
                if let State::Match = now {
                    found = Some((start, at));
                } else if line.get(at).is_some_and(|byte| accepts(&self.regex, now, *byte)) {
                    self.next.follow(&self.regex, state + 1, start);
                }
            }
            if at == line.len() {
                break;
            }
            std::mem::swap(&mut self.current, &mut self.next);
        }
        found
    }

    /// Folds the matches in a line into a checksum.
    fn all(&mut self, mut checksum: u64, line: &[u8]) -> u64 {
        let mut at = 0;
        while at <= line.len() {
            let Some((start, end)) = self.first(line, at) else { break };
            checksum = mix(checksum, (start as u64) << 32 | end as u64);
            at = end.max(at + 1);
        }
        checksum
    }
}

fn accepts(regex: &Regex, state: State, byte: u8) -> bool {
    match state {
        State::Byte(wanted) => wanted == byte,
        State::Class(set) => regex.classes[set][usize::from(byte >> 6)] >> (byte & 63) & 1 != 0,
        State::Any => true,
        _ => false,
    }
}

/// Finds all matches of the patterns in a log of size lines.
#[no_mangle]
pub extern "C" fn regex(size: i32) -> u64 {
    let Ok(log) = write_log(size) else { return 0 };
    let mut checksum = CHECKSUM_SEED;
    for pattern in PATTERNS {
        let mut matcher = Matcher::new(compile(pattern));
        for line in log.lines() {
            checksum = matcher.all(checksum, line.as_bytes());
        }
    }
    checksum
}

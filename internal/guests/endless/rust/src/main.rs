//! Endless is a guest that never ends. Its first argument says what stands before the loop, the
//! second one how the loop is written, or "once" for none, so that tests can see that it is the
//! loop that does not end. Each loop stands in a function of its own, behind what precedes it.

use std::hint::black_box;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::{env, process};

static COUNT: AtomicU32 = AtomicU32::new(0);
// Main sets these, by what the compiler can't know.
static NEVER: AtomicBool = AtomicBool::new(false);
static ALWAYS: AtomicBool = AtomicBool::new(false);

fn count(n: u32) {
    COUNT.fetch_add(n, Relaxed);
}

fn never() -> bool {
    NEVER.load(Relaxed)
}

fn always() -> bool {
    ALWAYS.load(Relaxed)
}

#[inline(never)]
fn step() {
    count(1);
}

#[inline(never)]
fn with(callback: &dyn Fn()) {
    count(2);
    callback();
    count(3);
}

fn read_input() {
    let mut input = [0; 99];
    count(io::stdin().read(&mut input).unwrap_or(0) as u32);
}

fn in_table() {
    black_box(step as fn())();
}

/// Defines a function for each way to write a loop. The first one changes nothing at all.
macro_rules! loops {
    ($position:ident, $before:expr) => {
        mod $position {
            use super::*;

            #[inline(never)]
            pub fn empty() {
                $before;
                loop {}
            }

            #[inline(never)]
            pub fn local() {
                $before;
                let mut n = 0_u32;
                loop {
                    n ^= 10;
                    if n == 11 {
                        break;
                    }
                }
                count(n);
            }

            #[inline(never)]
            pub fn forever() {
                $before;
                loop {
                    count(10);
                }
            }

            #[inline(never)]
            pub fn while_() {
                $before;
                while always() {
                    count(11);
                }
            }

            #[inline(never)]
            pub fn labelled() {
                $before;
                'first: loop {
                    count(13);
                    loop {
                        count(14);
                        if always() {
                            continue 'first;
                        }
                        if never() {
                            break 'first;
                        }
                    }
                }
            }

            #[inline(never)]
            pub fn return_() {
                $before;
                loop {
                    count(15);
                    if never() {
                        return;
                    }
                }
            }

            #[inline(never)]
            pub fn calling() {
                $before;
                loop {
                    step();
                    count(16);
                }
            }

            #[inline(never)]
            pub fn iterator() {
                $before;
                for n in (12..13).cycle() {
                    count(n);
                }
            }

            #[inline(never)]
            pub fn once() {
                $before;
                count(17);
            }
        }
    };
}

loops!(read, read_input());
loops!(call, step());
loops!(table, in_table());
loops!(called, ());

macro_rules! run {
    ($position:ident, $form:expr) => {
        match $form {
            "empty" => $position::empty(),
            "local" => $position::local(),
            "for" => $position::forever(),
            "while" => $position::while_(),
            "goto" => $position::labelled(),
            "return" => $position::return_(),
            "calling" => $position::calling(),
            "iterator" => $position::iterator(),
            "once" => $position::once(),
            _ => process::exit(2),
        }
    };
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    NEVER.store(arguments.len() == 99, Relaxed);
    ALWAYS.store(arguments.len() != 99, Relaxed);
    let [_, position, form] = &arguments[..] else { process::exit(2) };
    let form = form.as_str();
    match position.as_str() {
        "read" => run!(read, form),
        "call" => run!(call, form),
        "table" => run!(table, form),
        "callback" => with(&|| run!(called, form)),
        _ => process::exit(2),
    }
}

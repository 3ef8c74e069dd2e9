use crate::{mix, Random, CHECKSUM_SEED};

const DEPTH: u32 = 10;

type Row = [i64; 4];

/// A node of a tree that is evaluated by virtual calls. Numbers wrap around.
trait Term {
    fn evaluate(&self, row: &Row) -> i64;
}

struct Constant(i64);
struct Variable(usize);
struct Sum(Box<dyn Term>, Box<dyn Term>);
struct Difference(Box<dyn Term>, Box<dyn Term>);
struct Product(Box<dyn Term>, Box<dyn Term>);
struct Choice(Box<dyn Term>, Box<dyn Term>, Box<dyn Term>);

impl Term for Constant {
    fn evaluate(&self, _: &Row) -> i64 {
        self.0
    }
}

impl Term for Variable {
    fn evaluate(&self, row: &Row) -> i64 {
        row[self.0]
    }
}

impl Term for Sum {
    fn evaluate(&self, row: &Row) -> i64 {
        self.0.evaluate(row).wrapping_add(self.1.evaluate(row))
    }
}

impl Term for Difference {
    fn evaluate(&self, row: &Row) -> i64 {
        self.0.evaluate(row).wrapping_sub(self.1.evaluate(row))
    }
}

impl Term for Product {
    fn evaluate(&self, row: &Row) -> i64 {
        self.0.evaluate(row).wrapping_mul(self.1.evaluate(row))
    }
}

impl Term for Choice {
    fn evaluate(&self, row: &Row) -> i64 {
        if self.0.evaluate(row) > 0 {
            return self.1.evaluate(row);
        }
        self.2.evaluate(row)
    }
}

fn random_term(source: &mut Random, depth: u32) -> Box<dyn Term> {
    let kind = (source.next() >> 16) % 16;
    if depth == 0 || kind == 0 {
        let number = source.next() >> 8;
        if number % 2 == 0 {
            return Box::new(Variable((number / 2 % 4) as usize));
        }
        return Box::new(Constant(i64::from(number / 2 % 1000)));
    }
    let first = random_term(source, depth - 1);
    let second = random_term(source, depth - 1);
    match kind {
        1..=5 => Box::new(Sum(first, second)),
        6..=9 => Box::new(Difference(first, second)),
        10..=13 => Box::new(Product(first, second)),
        _ => Box::new(Choice(first, second, random_term(source, depth - 1))),
    }
}

/// Evaluates one random tree for size rows of values.
#[no_mangle]
pub extern "C" fn evaluator(size: i32) -> u64 {
    let mut source = Random(15);
    let tree = random_term(&mut source, DEPTH);
    let mut checksum = CHECKSUM_SEED;
    for _ in 0..size {
        let row: Row = std::array::from_fn(|_| i64::from(source.next() % 2000) - 1000);
        checksum = mix(checksum, tree.evaluate(&row) as u64);
    }
    checksum
}

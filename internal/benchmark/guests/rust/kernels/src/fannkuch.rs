use crate::{mix, CHECKSUM_SEED};

/// Goes through all orders of a stack. An order's flips are how often the topmost pancake
/// T can turn over the first T+1 before the 0 is on top.
struct Pancakes {
    order: Vec<usize>,
    turned: Vec<usize>,
    /// How many orders were seen so far.
    orders: u64,
    /// The flips of the worst order.
    most: u64,
    /// The flips of even orders minus those of odd ones.
    balance: u64,
}

impl Pancakes {
    /// Visits all orders of the first n pancakes and leaves them as they were.
    fn permute(&mut self, n: usize) {
        if n == 1 {
            self.visit();
            return;
        }
        for _ in 0..n {
            self.permute(n - 1);
            self.order[..n].rotate_left(1);
        }
    }

    fn visit(&mut self) {
        let flips = self.flips();
        self.most = self.most.max(flips);
        if self.orders % 2 == 0 {
            self.balance = self.balance.wrapping_add(flips);
        } else {
            self.balance = self.balance.wrapping_sub(flips);
        }
        self.orders += 1;
    }

    fn flips(&mut self) -> u64 {
        self.turned.copy_from_slice(&self.order);
        let mut flips = 0;
        while self.turned[0] != 0 {
            let top = self.turned[0];
            self.turned[..=top].reverse();
            flips += 1;
        }
        flips
    }
}

/// Flips every permutation of size numbers.
#[no_mangle]
pub extern "C" fn fannkuch(size: i32) -> u64 {
    let n = size.max(1) as usize;
    let mut p = Pancakes { order: (0..n).collect(), turned: vec![0; n], orders: 0, most: 0, balance: 0 };
    p.permute(n);
    mix(mix(mix(CHECKSUM_SEED, p.orders), p.most), p.balance)
}

use crate::{mix, Random, CHECKSUM_SEED};

const WALKS: usize = 16;

struct Node {
    key: u32,
    left: Tree,
    right: Tree,
}

type Tree = Option<Box<Node>>;

fn insert(tree: &mut Tree, key: u32) {
    let mut at = tree;
    while let Some(node) = at {
        at = if key < node.key { &mut node.left } else { &mut node.right };
    }
    *at = Some(Box::new(Node { key, left: None, right: None }));
}

/// Folds the keys into a checksum, and returns the height.
fn walk(tree: &Tree, checksum: &mut u64) -> u32 {
    let Some(node) = tree else { return 0 };
    let left = walk(&node.left, checksum);
    *checksum = mix(*checksum, u64::from(node.key));
    1 + left.max(walk(&node.right, checksum))
}

/// Inserts size random keys into a search tree, and walks it in order several times.
#[no_mangle]
pub extern "C" fn tree_walk(size: i32) -> u64 {
    let mut source = Random(14);
    let mut root = None;
    for _ in 0..size {
        insert(&mut root, source.next());
    }
    let mut checksum = CHECKSUM_SEED;
    for _ in 0..WALKS {
        let height = walk(&root, &mut checksum);
        checksum = mix(checksum, u64::from(height));
    }
    checksum
}

use crate::{mix, positive, Random, CHECKSUM_SEED};

/// Returns how deep its calls nest.
fn sort_numbers(numbers: &mut [u32]) -> u32 {
    if numbers.len() < 2 {
        return 1;
    }
    let pivot = numbers[numbers.len() / 2];
    let (mut low, mut end) = (0, numbers.len());
    while low < end {
        while numbers[low] < pivot {
            low += 1;
        }
        while pivot < numbers[end - 1] {
            end -= 1;
        }
        if low < end {
            numbers.swap(low, end - 1);
            low += 1;
            end -= 1;
        }
    }
    let left = sort_numbers(&mut numbers[..end]);
    1 + left.max(sort_numbers(&mut numbers[low..]))
}

/// Sorts size random numbers by quicksort, down to single numbers. The checksum is of their order
/// and of the depth of the recursion.
#[no_mangle]
pub extern "C" fn sort(size: i32) -> u64 {
    let mut source = Random(16);
    let mut numbers: Vec<u32> = (0..positive(size)).map(|_| source.next() >> 8).collect();
    let depth = sort_numbers(&mut numbers);
    numbers
        .iter()
        .fold(mix(CHECKSUM_SEED, u64::from(depth)), |checksum, &n| mix(checksum, u64::from(n)))
}

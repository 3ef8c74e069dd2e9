use crate::{mix, positive, Random, CHECKSUM_SEED};

fn random_matrix(source: &mut Random, n: usize) -> Vec<f64> {
    (0..n * n).map(|_| source.unit()).collect()
}

fn multiply(a: &[f64], b: &[f64], n: usize) -> Vec<f64> {
    let mut product = vec![0.0; n * n];
    for row in 0..n {
        for column in 0..n {
            let mut sum = 0.0;
            for k in 0..n {
                sum += a[row * n + k] * b[k * n + column];
            }
            product[row * n + column] = sum;
        }
    }
    product
}

/// Multiplies two random matrices of size × size floating-point numbers.
#[no_mangle]
pub extern "C" fn matrix(size: i32) -> u64 {
    let n = positive(size);
    let mut source = Random(3);
    let (a, b) = (random_matrix(&mut source, n), random_matrix(&mut source, n));
    let product = multiply(&a, &b, n);
    product.iter().fold(CHECKSUM_SEED, |checksum, v| mix(checksum, v.to_bits()))
}

#include "kernels.h"

static double *random_matrix(uint64_t *source, size_t n) {
    double *cells = resize(NULL, n * n * sizeof *cells);
    for (size_t i = 0; i < n * n; i++) cells[i] = unit(source);
    return cells;
}

static void multiply(double *product, const double *a, const double *b, size_t n) {
    for (size_t row = 0; row < n; row++) {
        for (size_t column = 0; column < n; column++) {
            double sum = 0;
            for (size_t k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];
            product[row * n + column] = sum;
        }
    }
}

// Multiplies two random matrices of size × size floating-point numbers.
KERNEL(matrix) {
    size_t n = positive(size);
    uint64_t source = 3, checksum = checksum_seed;
    double *a = random_matrix(&source, n), *b = random_matrix(&source, n);
    double *product = allocate_zeroed(n * n, sizeof *product);
    multiply(product, a, b, n);
    for (size_t i = 0; i < n * n; i++) checksum = mix_double(checksum, product[i]);
    free(a);
    free(b);
    free(product);
    return checksum;
}

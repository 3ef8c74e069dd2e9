#include "kernels.h"

// After how many turns a point counts as one of the set.
enum { escape_limit = 50 };

static uint64_t escape_time(double real, double imaginary) {
    double x = 0, y = 0;
    for (uint64_t turn = 0; turn < escape_limit; turn++) {
        double xx = x * x, yy = y * y;
        if (xx + yy > 4) return turn;
        y = 2 * x * y + imaginary;
        x = xx - yy + real;
    }
    return escape_limit;
}

// Counts, for size × size points, the turns until each escapes.
KERNEL(mandelbrot) {
    uint64_t checksum = checksum_seed;
    for (int32_t row = 0; row < size; row++) {
        for (int32_t column = 0; column < size; column++) {
            double real = 2.5 * column / size - 2, imaginary = 2.5 * row / size - 1.25;
            checksum = mix(checksum, escape_time(real, imaginary));
        }
    }
    return checksum;
}

// The names of the kernels in this folder, for the command.
#define KERNELS(K) \
    K(spin) K(sha256) K(crc32) K(matrix) K(nbody) K(sieve) \
    K(fannkuch) K(quicksort) K(json) K(hash_map) K(mandelbrot) K(levenshtein)

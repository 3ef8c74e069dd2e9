// The kernels as a WASI command: kernelcommand NAME SIZE prints the checksum in 16
// hexadecimal digits and the nanoseconds that the kernel took by the guest's own clock, so
// that what starts and ends a program is not in the measure.
#define _POSIX_C_SOURCE 200809L // for clock_gettime

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "list.h" // of the folder that is linked

typedef uint64_t kernel(int32_t size);

#define DECLARE(name) kernel name;
KERNELS(DECLARE)

#define ROW(name) {#name, name},
static const struct {
    const char *name;
    kernel *run;
} kernels[] = {KERNELS(ROW)};

static kernel *find(const char *name) {
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        if (strcmp(kernels[i].name, name) == 0) return kernels[i].run;
    }
    return NULL;
}

static bool parse(const char *text, int32_t *size) {
    char *end;
    long long value = strtoll(text, &end, 10);
    *size = (int32_t)value;
    return *text && !*end && *size == value;
}

static uint64_t now(void) {
    struct timespec time;
    if (clock_gettime(CLOCK_MONOTONIC, &time) != 0) abort();
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

int main(int argc, char **argv) {
    int32_t size;
    kernel *run = argc == 3 && parse(argv[2], &size) ? find(argv[1]) : NULL;
    if (!run) {
        fputs("usage: kernelcommand NAME SIZE\n", stderr);
        return 2;
    }
    uint64_t start = now();
    uint64_t checksum = run(size);
    uint64_t took = now() - start;
    return printf("%016llx %llu\n", (unsigned long long)checksum, (unsigned long long)took) < 0;
}

// Seeded is a guest that seeds C's rand before or after it reads its input, as its arguments
// say: from what (entropy or clock), and when (early or late). It prints a number that it draws
// at the end.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int seed(const char *from) {
    unsigned value;
    if (strcmp(from, "clock") == 0) {
        struct timespec now;
        if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
        value = (unsigned)now.tv_nsec;
    } else if (getentropy(&value, sizeof value) != 0) {
        return -1;
    }
    srand(value);
    return 0;
}

static int skip_input(void) {
    char buffer[4096];
    ssize_t got;
    while ((got = read(STDIN_FILENO, buffer, sizeof buffer)) > 0) {
    }
    return (int)got;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const int early = strcmp(argv[2], "early") == 0;
    if (early && seed(argv[1]) != 0) return 1;
    if (skip_input() != 0) return 1;
    if (!early && seed(argv[1]) != 0) return 1;
    printf("%d", rand());
    return 0;
}

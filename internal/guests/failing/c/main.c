// Failing is a guest that fails as programs in C do: after it has read its input, it looks for a
// file that need not exist, says on standard error why it fails, and exits with 1.
#include <stdio.h>

int main(void) {
    char city[64];
    size_t length = fread(city, 1, sizeof city - 1, stdin);
    city[length] = 0;
    FILE *settings = fopen("/etc/weather.conf", "r");
    if (settings) fclose(settings);
    fprintf(stderr, "no such city: %s; try Oslo\n", city);
    return 1;
}

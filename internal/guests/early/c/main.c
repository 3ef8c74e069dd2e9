// Early is a guest that does something before it reads its input, so that tests can see
// whether a call gets to know what another one did there. Its argument says what; an
// argument that is no act's name is told as it is.
#include "early.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct act *find(const struct act *act, const char *name) {
    while (act->name && strcmp(act->name, name) != 0) act++;
    return act->name ? act : NULL;
}

// read_input returns what it read, or why it could not.
static const char *read_input(void) {
    static char input[4096];
    size_t length = 0;
    for (;;) {
        ssize_t got = read(STDIN_FILENO, input + length, sizeof input - 1 - length);
        if (got < 0) snprintf(input, sizeof input, "errno %d", errno);
        if (got <= 0) return input;
        length += (size_t)got;
    }
}

int main(int argc, char **argv) {
    static char text[TEXT_SIZE];
    if (argc < 2) return 2;
    const struct act *act = find(library_acts, argv[1]);
    if (!act) act = find(raw_acts, argv[1]);
    if (act) {
        act->before(text);
    } else {
        snprintf(text, sizeof text, "%s", argv[1]);
    }
    const char *input = read_input();
    if (act && act->after) act->after(text);
    return printf("%s %s", text, input) < 0;
}

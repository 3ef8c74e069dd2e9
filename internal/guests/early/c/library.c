#include "early.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char tenant[] = "/project/tenant.txt";

static void tell_error(char *text) { snprintf(text, TEXT_SIZE, "errno %d", errno); }

void read_file(char *text) {
    FILE *file = fopen(tenant, "r");
    if (!file) {
        tell_error(text);
        return;
    }
    text[fread(text, 1, TEXT_SIZE - 1, file)] = 0;
    fclose(file);
}

static void stat_file(char *text) {
    struct stat info;
    if (stat(tenant, &info) != 0) {
        tell_error(text);
        return;
    }
    snprintf(text, TEXT_SIZE, "%lld", (long long)info.st_size);
}

static void list_directory(char *text) {
    DIR *directory = opendir("/project");
    if (!directory) {
        tell_error(text);
        return;
    }
    size_t length = 0;
    for (struct dirent *entry; (entry = readdir(directory)) && length < TEXT_SIZE;) {
        if (entry->d_name[0] == '.') continue;
        length += (size_t)snprintf(text + length, TEXT_SIZE - length, "%s;", entry->d_name);
    }
    closedir(directory);
}

static void write_stream(int stream, const char *words, char *text) {
    if (write(stream, words, strlen(words)) < 0) {
        tell_error(text);
        return;
    }
    snprintf(text, TEXT_SIZE, "written");
}

static void write_log(char *text) { write_stream(STDERR_FILENO, "starting\n", text); }

static void write_output(char *text) { write_stream(STDOUT_FILENO, "early ", text); }

static void read_environment(char *text) {
    const char *value = getenv("SETTING");
    snprintf(text, TEXT_SIZE, "%s", value ? value : "unset");
}

static void read_clock(char *text) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) {
        tell_error(text);
        return;
    }
    snprintf(text, TEXT_SIZE, "%lld", (long long)now.tv_sec * 1000000000 + now.tv_nsec);
}

static void draw_random(char *text) {
    uint64_t number;
    if (getentropy(&number, sizeof number) != 0) {
        tell_error(text);
        return;
    }
    snprintf(text, TEXT_SIZE, "%016llx", (unsigned long long)number);
}

static void sleep_a_little(char *text) {
    const struct timespec little = {.tv_nsec = 1000000};
    if (nanosleep(&little, NULL) != 0) {
        tell_error(text);
        return;
    }
    read_clock(text);
}

static void end(char *text) {
    (void)text;
    _Exit(0);
}

const struct act library_acts[] = {
    {"file", read_file, NULL},
    {"stat", stat_file, NULL},
    {"list", list_directory, NULL},
    {"log", write_log, NULL},
    {"print", write_output, NULL},
    {"environment", read_environment, NULL},
    {"clock", read_clock, NULL},
    {"random", draw_random, NULL},
    {"sleep", sleep_a_little, NULL},
    {"exit", end, NULL},
    {NULL, NULL, NULL},
};

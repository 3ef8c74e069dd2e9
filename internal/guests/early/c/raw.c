#include "early.h"

#include <stdio.h>
#include <wasi/api.h>

// PROJECT is the descriptor of the directory /project: the second one that is open from the
// start, after the root.
enum { STDIN = 0, STDOUT = 1, STDERR = 2, PROJECT = 4 };

static void tell(char *text, __wasi_errno_t errno) { snprintf(text, TEXT_SIZE, "errno %d", errno); }

static void tell_number(char *text, __wasi_errno_t errno, unsigned long long number) {
    if (errno) {
        tell(text, errno);
        return;
    }
    snprintf(text, TEXT_SIZE, "%llu", number);
}

// poll_input tells how much there is to read.
static void poll_input(char *text) {
    const __wasi_subscription_t subscription = {.u = {.tag = __WASI_EVENTTYPE_FD_READ, .u.fd_read.file_descriptor = STDIN}};
    __wasi_event_t event = {0};
    __wasi_size_t events;
    __wasi_errno_t errno = __wasi_poll_oneoff(&subscription, &event, 1, &events);
    tell_number(text, errno ? errno : event.error, event.fd_readwrite.nbytes);
}

static void stat_directory(char *text) {
    __wasi_filestat_t stat = {0};
    __wasi_errno_t errno = __wasi_fd_filestat_get(PROJECT, &stat);
    tell_number(text, errno, stat.mtim);
}

static void read_nothing(char *text) {
    __wasi_size_t got;
    tell(text, __wasi_fd_read(STDIN, NULL, 0, &got));
}

static void read_directory(char *text) {
    __wasi_size_t got;
    tell(text, __wasi_fd_read(PROJECT, NULL, 0, &got));
}

static void read_at(char *text) {
    uint8_t buffer[8];
    const __wasi_iovec_t iovec = {buffer, sizeof buffer};
    __wasi_size_t got;
    tell(text, __wasi_fd_pread(STDIN, &iovec, 1, 0, &got));
}

static void seek_input(char *text) {
    __wasi_filesize_t offset;
    tell(text, __wasi_fd_seek(STDIN, 1, __WASI_WHENCE_SET, &offset));
}

static void close_input(char *text) { tell(text, __wasi_fd_close(STDIN)); }

static void replace_input(char *text) { tell(text, __wasi_fd_renumber(STDERR, STDIN)); }

static void set_flags(char *text) { tell(text, __wasi_fd_fdstat_set_flags(STDIN, __WASI_FDFLAGS_NONBLOCK)); }

// tell_flags leaves other flags behind than it found.
static void tell_flags(char *text) {
    __wasi_fdstat_t input = {0}, output = {0};
    __wasi_errno_t errno = __wasi_fd_fdstat_get(STDIN, &input);
    if (!errno) errno = __wasi_fd_fdstat_get(STDOUT, &output);
    if (!errno) errno = __wasi_fd_fdstat_set_flags(STDIN, 0);
    if (!errno) errno = __wasi_fd_fdstat_set_flags(STDOUT, __WASI_FDFLAGS_APPEND);
    if (errno) {
        tell(text, errno);
        return;
    }
    snprintf(text, TEXT_SIZE, "flags %d %d", input.fs_flags, output.fs_flags);
}

static char section[TEXT_SIZE];

// A test makes this the module's start function (§2.5.9), which runs before _start and the
// C library. It reads the tenant's file where the argument says so, or what the input begins
// with.
__attribute__((export_name("early"))) void start_section(void);
void start_section(void) {
    static uint8_t *arguments[8], names[TEXT_SIZE];
    __wasi_size_t count, size, got;
    if (__wasi_args_sizes_get(&count, &size) || count != 2 || size > sizeof names) return;
    if (__wasi_args_get(arguments, names)) return;
    __wasi_fd_t file = STDIN;
    if (arguments[1][0] == 'f' && __wasi_path_open(PROJECT, 0, "tenant.txt", 0, __WASI_RIGHTS_FD_READ, 0, 0, &file)) return;
    const __wasi_iovec_t iovec = {(uint8_t *)section, file == STDIN ? 9 : sizeof section - 1};
    if (__wasi_fd_read(file, &iovec, 1, &got)) section[0] = 0;
}

static void tell_section(char *text) { snprintf(text, TEXT_SIZE, "section %s", section); }

const struct act raw_acts[] = {
    {"poll", poll_input, NULL},
    {"directory-times", stat_directory, NULL},
    {"read-nothing", read_nothing, read_file},
    {"read-directory", read_directory, NULL},
    {"pread", read_at, NULL},
    {"seek", seek_input, NULL},
    {"close", close_input, NULL},
    {"renumber", replace_input, NULL},
    {"flags", set_flags, tell_flags},
    {"file-section", tell_section, NULL},
    {"input-section", tell_section, NULL},
    {NULL, NULL, NULL},
};

#define _GNU_SOURCE // for clock_gettime
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "result.h"
#include "sqlite3.h"

static const char project[] = "/project";

void resolve(const char *name, char *path, size_t room) {
    char joined[8300];
    size_t used = 0;
    if (strlen(name) > 4096) fail("the path is longer than 4096 bytes");
    sqlite3_snprintf(sizeof joined, joined, "%s/%s", name[0] == '/' ? "" : project, name);
    for (char *part = strtok(joined, "/"); part; part = strtok(NULL, "/")) {
        if (strcmp(part, ".") == 0) continue;
        if (strcmp(part, "..") == 0) {
            while (used > 0 && path[--used] != '/') continue;
            continue;
        }
        size_t length = strlen(part);
        if (length + 2 > room - used) fail("the path is longer than %d bytes", (int)room);
        path[used++] = '/';
        memcpy(path + used, part, length);
        used += length;
    }
    if (used == 0) path[used++] = '/';
    path[used] = 0;
}

int open_regular(const char *name, const char *path) {
    struct stat about;
    int file = open(path, O_RDONLY);
    if (file < 0) {
        switch (errno) {
        case ENOENT:
            fail("%s: there is no such file in the project", name);
        case ENOTDIR:
            fail("%s: a part of the path is not a directory", name);
        case EISDIR:
            fail("%s: it is a directory; name a file", name);
        case EACCES:
        case EPERM:
        case ENOTCAPABLE:
            fail("%s: not permitted: only paths inside the project can be used", name);
        }
        fail("%s: cannot be opened: %s", name, strerror(errno));
    }
    if (fstat(file, &about) != 0) fail("%s: cannot be read: %s", name, strerror(errno));
    if (S_ISDIR(about.st_mode)) fail("%s: it is a directory; name a file", name);
    if (!S_ISREG(about.st_mode)) fail("%s: it is not a regular file", name);
    return file;
}

ssize_t read_at(int file, void *buffer, size_t count, off_t offset) {
    size_t done = 0;
    while (done < count) {
        ssize_t n = pread(file, (char *)buffer + done, count - done, offset + (off_t)done);
        if (n < 0) return -1;
        if (n == 0) break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

struct version version_of(const char *path) {
    struct stat about;
    struct version v = {0};
    if (stat(path, &about) == 0) {
        v = (struct version){true, about.st_size, about.st_mtim.tv_sec, about.st_mtim.tv_nsec};
    }
    return v;
}

bool same_version(struct version a, struct version b) {
    return a.exists == b.exists && a.size == b.size && a.seconds == b.seconds && a.nanoseconds == b.nanoseconds;
}

// An open file: one of the project, or a temporary one in memory, in blocks so that growing copies nothing.
enum { block_size = 64 * 1024 };

struct file {
    sqlite3_file base;
    int descriptor; // -1 for a temporary file
    char **blocks;
    size_t block_count, block_room;
    sqlite3_int64 size; // of a temporary file
};

static int close_file(sqlite3_file *base) {
    struct file *f = (struct file *)base;
    if (f->descriptor >= 0) close(f->descriptor);
    for (size_t i = 0; i < f->block_count; i++) free(f->blocks[i]);
    free(f->blocks);
    return SQLITE_OK;
}

static int read_temporary(struct file *f, char *to, sqlite3_int64 count, sqlite3_int64 offset) {
    sqlite3_int64 there = offset < f->size ? f->size - offset : 0;
    sqlite3_int64 left = there < count ? there : count;
    memset(to + left, 0, (size_t)(count - left));
    int code = left < count ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
    while (left > 0) {
        size_t in_block = (size_t)(offset % block_size), n = block_size - in_block;
        if ((sqlite3_int64)n > left) n = (size_t)left;
        memcpy(to, f->blocks[offset / block_size] + in_block, n);
        to += n;
        offset += (sqlite3_int64)n;
        left -= (sqlite3_int64)n;
    }
    return code;
}

static int read_file(sqlite3_file *base, void *to, int count, sqlite3_int64 offset) {
    struct file *f = (struct file *)base;
    if (f->descriptor < 0) return read_temporary(f, to, count, offset);
    ssize_t n = read_at(f->descriptor, to, (size_t)count, offset);
    if (n < 0) return SQLITE_IOERR_READ;
    memset((char *)to + n, 0, (size_t)(count - n));
    return n < count ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
}

static bool grow(struct file *f, size_t blocks) {
    if (blocks > f->block_room) {
        size_t room = blocks + blocks / 2 + 16;
        char **more = realloc(f->blocks, room * sizeof *more);
        if (!more) return false;
        f->blocks = more;
        f->block_room = room;
    }
    while (f->block_count < blocks) {
        char *block = calloc(1, block_size);
        if (!block) return false;
        f->blocks[f->block_count++] = block;
    }
    return true;
}

static int write_file(sqlite3_file *base, const void *from, int count, sqlite3_int64 offset) {
    struct file *f = (struct file *)base;
    const char *bytes = from;
    sqlite3_int64 left = count;
    if (f->descriptor >= 0) return SQLITE_READONLY;
    if (offset < 0 || offset + count > 0x7FFFFFFF) return SQLITE_FULL;
    if (!grow(f, (size_t)((offset + count + block_size - 1) / block_size))) return SQLITE_IOERR_NOMEM;
    if (offset + count > f->size) f->size = offset + count;
    while (left > 0) {
        size_t in_block = (size_t)(offset % block_size), n = block_size - in_block;
        if ((sqlite3_int64)n > left) n = (size_t)left;
        memcpy(f->blocks[offset / block_size] + in_block, bytes, n);
        bytes += n;
        offset += (sqlite3_int64)n;
        left -= (sqlite3_int64)n;
    }
    return SQLITE_OK;
}

static int truncate_file(sqlite3_file *base, sqlite3_int64 size) {
    struct file *f = (struct file *)base;
    if (f->descriptor >= 0) return SQLITE_READONLY;
    if (size >= f->size) return SQLITE_OK;
    size_t keep = (size_t)((size + block_size - 1) / block_size);
    while (f->block_count > keep) free(f->blocks[--f->block_count]);
    // What lies behind the end reads as zeros if the file grows again.
    if (size % block_size) memset(f->blocks[keep - 1] + size % block_size, 0, (size_t)(block_size - size % block_size));
    f->size = size;
    return SQLITE_OK;
}

static int sync_file(sqlite3_file *base, int flags) {
    (void)base, (void)flags;
    return SQLITE_OK;
}

static int size_of_file(sqlite3_file *base, sqlite3_int64 *size) {
    struct file *f = (struct file *)base;
    struct stat about;
    *size = f->size;
    if (f->descriptor < 0) return SQLITE_OK;
    if (fstat(f->descriptor, &about) != 0) return SQLITE_IOERR_FSTAT;
    *size = about.st_size;
    return SQLITE_OK;
}

// Nothing locks: nobody else is in the sandbox, and the host's programs would not see a lock.
static int lock_file(sqlite3_file *base, int level) {
    (void)base, (void)level;
    return SQLITE_OK;
}

static int check_reserved_lock(sqlite3_file *base, int *reserved) {
    (void)base;
    *reserved = 0;
    return SQLITE_OK;
}

static int control_file(sqlite3_file *base, int operation, void *argument) {
    (void)base, (void)operation, (void)argument;
    return SQLITE_NOTFOUND;
}

static int sector_size(sqlite3_file *base) {
    (void)base;
    return 4096;
}

static int characteristics(sqlite3_file *base) {
    (void)base;
    return 0;
}

// Version 1 has no shared memory: the index of a write-ahead log is in memory, in the locking mode EXCLUSIVE.
static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = close_file,
    .xRead = read_file,
    .xWrite = write_file,
    .xTruncate = truncate_file,
    .xSync = sync_file,
    .xFileSize = size_of_file,
    .xLock = lock_file,
    .xUnlock = lock_file,
    .xCheckReservedLock = check_reserved_lock,
    .xFileControl = control_file,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = characteristics,
};

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *got) {
    struct file *f = (struct file *)base;
    (void)vfs;
    *f = (struct file){.descriptor = -1};
    bool temporary = !name || flags & SQLITE_OPEN_DELETEONCLOSE;
    if (!temporary) {
        f->descriptor = open(name, O_RDONLY);
        // A database that was closed has no log, and SQLite wants to make an empty one.
        if (f->descriptor < 0 && !(flags & SQLITE_OPEN_WAL && errno == ENOENT)) return SQLITE_CANTOPEN;
        if (got) *got = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
    } else if (got) {
        *got = flags;
    }
    f->base.pMethods = &methods;
    return SQLITE_OK;
}

static int delete_file(sqlite3_vfs *vfs, const char *name, int sync) {
    (void)vfs, (void)name, (void)sync;
    return SQLITE_IOERR_DELETE;
}

static int access_file(sqlite3_vfs *vfs, const char *name, int flags, int *result) {
    struct stat about;
    (void)vfs;
    // As everywhere, an empty log or journal counts as none.
    *result = flags != SQLITE_ACCESS_READWRITE && stat(name, &about) == 0 && about.st_size > 0;
    return SQLITE_OK;
}

static int full_path(sqlite3_vfs *vfs, const char *name, int room, char *path) {
    (void)vfs;
    sqlite3_snprintf(room, path, "%s", name);
    return SQLITE_OK;
}

static int randomness(sqlite3_vfs *vfs, int count, char *bytes) {
    (void)vfs;
    return getentropy(bytes, (size_t)count) == 0 ? count : 0;
}

// SQLite sleeps while others hold a lock, which nobody does.
static int sleep_for(sqlite3_vfs *vfs, int microseconds) {
    (void)vfs;
    return microseconds;
}

// SQLite counts milliseconds of Julian days.
static int current_time_milliseconds(sqlite3_vfs *vfs, sqlite3_int64 *now) {
    struct timespec t;
    (void)vfs;
    if (clock_gettime(CLOCK_REALTIME, &t) != 0) return SQLITE_ERROR;
    *now = 210866760000000LL + (sqlite3_int64)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    return SQLITE_OK;
}

static int current_time(sqlite3_vfs *vfs, double *now) {
    sqlite3_int64 milliseconds = 0;
    int code = current_time_milliseconds(vfs, &milliseconds);
    *now = (double)milliseconds / 86400000.0;
    return code;
}

static int last_error(sqlite3_vfs *vfs, int room, char *message) {
    (void)vfs, (void)room, (void)message;
    return errno;
}

static sqlite3_vfs files = {
    .iVersion = 2,
    .szOsFile = sizeof(struct file),
    .mxPathname = 8192,
    .zName = "project",
    .xOpen = open_file,
    .xDelete = delete_file,
    .xAccess = access_file,
    .xFullPathname = full_path,
    .xRandomness = randomness,
    .xSleep = sleep_for,
    .xCurrentTime = current_time,
    .xCurrentTimeInt64 = current_time_milliseconds,
    .xGetLastError = last_error,
};

int register_files(void) { return sqlite3_vfs_register(&files, 1); }

// What SQLite calls with SQLITE_OS_OTHER.
int sqlite3_os_init(void) { return register_files(); }

int sqlite3_os_end(void) { return SQLITE_OK; }

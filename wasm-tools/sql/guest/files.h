// The files that SQLite sees.
#ifndef FILES_H
#define FILES_H

#include <stdbool.h>
#include <sys/types.h>

// register_files makes this SQLite's only file system (a VFS). Files of the project are opened for
// reading alone, whatever SQLite asks for. Temporary files are memory.
int register_files(void);

// resolve writes the path of a file that was named relative to the project, without "." and ".." in it.
// It fails on names that no path has.
void resolve(const char *name, char *path, size_t room);

// open_regular opens a file for reading, and fails with words for the model if it is missing or is none.
int open_regular(const char *name, const char *path);

// read_at reads until the buffer is full or the file ends. It returns -1 if that fails.
ssize_t read_at(int file, void *buffer, size_t count, off_t offset);

// version tells whether a file is still what it was.
struct version {
    bool exists;
    off_t size;
    long long seconds;
    long nanoseconds;
};

struct version version_of(const char *path);
bool same_version(struct version a, struct version b);

#endif

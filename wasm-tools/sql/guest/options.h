// How SQLite is compiled, for WASI and for the native build that tests compare it with. The compiler
// includes this before everything else.
#ifndef OPTIONS_H
#define OPTIONS_H

#define SQLITE_THREADSAFE 0
#define SQLITE_OMIT_LOAD_EXTENSION 1
#define SQLITE_OMIT_DEPRECATED 1
#define SQLITE_OMIT_SHARED_CACHE 1
#define SQLITE_DEFAULT_MEMSTATUS 0
#define SQLITE_MAX_MMAP_SIZE 0
#define SQLITE_MAX_ATTACHED 0
#define SQLITE_USE_URI 0
#define SQLITE_TRUSTED_SCHEMA 0
#define SQLITE_ENABLE_FTS5 1
#define SQLITE_ENABLE_MATH_FUNCTIONS 1

#ifdef __wasi__
// files.c is the only way to files.
#define SQLITE_OS_OTHER 1
#endif

#endif

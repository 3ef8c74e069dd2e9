/* What SQLite takes for granted, and WASI's C library lacks: users, owners and locks of files. A
   program in the sandbox is its own user, and SQLite is run with -vfs unix-none, which locks nothing. */
#include <fcntl.h>
#include <pwd.h>
#include <sys/types.h>

#ifndef F_RDLCK
#define F_RDLCK 0
#define F_WRLCK 1
#define F_UNLCK 2
#endif
#ifndef F_GETLK
#define F_GETLK 5
#define F_SETLK 6
#define F_SETLKW 7
#endif

static inline uid_t getuid(void) { return 0; }
static inline uid_t geteuid(void) { return 0; }
static inline int fchown(int file, uid_t owner, gid_t group) { return 0; }
#define getpwuid(user) ((struct passwd *)0)

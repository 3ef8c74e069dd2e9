// One statement of SQL that only reads.
#ifndef STATEMENT_H
#define STATEMENT_H

#include "arguments.h"
#include "sqlite3.h"

// source is what a statement reads, for messages, and how to see whether somebody changed it meanwhile.
struct source {
    const char *name;
    bool (*changed)(void);
};

// confine turns off all that could write, or that a database could smuggle in. Until forbid_writing,
// the program's own statements can set things up.
void confine(sqlite3 *db);
void forbid_writing(sqlite3 *db);

// answer runs the statement and prints its rows as the result. Core is a connection for reading the
// arguments, of which no file decides what its tables are.
_Noreturn void answer(sqlite3 *core, sqlite3 *db, const struct arguments *a, struct source source);

// fail_with prints what SQLite says about the last error of a connection, in words for the model.
_Noreturn void fail_with(sqlite3 *db, int code, struct source source);

#endif

// The arguments of a call. The host has checked them against the manifest's schema.
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include <stdbool.h>

#include "sqlite3.h"

struct arguments {
    char *text; // all of them, as JSON
    char *sql, *database, *knowledge_id, *format;
    bool header;
    bool has_params, has_tables;
    sqlite3_int64 limit, offset;
};

// read_arguments reads standard input. SQLite parses the JSON, in any connection.
void read_arguments(sqlite3 *db, struct arguments *a);

// members prepares a statement with a row for each member of an argument, or with "$" of all arguments:
// its key, its JSON type, and its value, which for arrays and objects is JSON.
sqlite3_stmt *members(sqlite3 *db, const struct arguments *a, const char *path);

// text_of returns a copy of a column's text, and fails if it has NUL in it.
char *text_of(sqlite3_stmt *statement, int column, const char *what);

#endif

// A text file as a table of SQLite's, which is read anew for each scan.
#ifndef TABLE_H
#define TABLE_H

#include "records.h"
#include "types.h"

struct table {
    const char *name, *file_name; // of the table; of the file, as the model wrote it
    char path[8400];
    struct form form;
    bool header;
    struct name names[column_limit];
    struct name members[column_limit]; // what JSON Lines calls the columns
    enum type types[column_limit];
    int columns;
    sqlite3_int64 rows;
};

// scan reads the whole file: its columns, their types, and how many rows it has. It fails with words for the model.
// Format is csv, tsv, jsonl, or NULL for what the file's name says.
struct table *scan(const char *name, const char *file_name, const char *format, bool header);

// attach makes the table available in a connection, under its name.
void attach(sqlite3 *db, struct table *table);

// load copies the table into the connection's memory, where joins find rows by an index.
void load(sqlite3 *db, struct table *table);

#endif

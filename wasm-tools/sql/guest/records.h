// Records of a text file, read as a stream: CSV (RFC 4180), TSV and JSON Lines.
#ifndef RECORDS_H
#define RECORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "sqlite3.h"

enum { column_limit = 2000, record_limit = 16 * 1024 * 1024 };

enum layout { layout_delimited, layout_json_lines };

// How a file is written, and where its records begin.
struct form {
    enum layout layout;
    char separator; // of layout_delimited
    size_t start;   // bytes before the first record: a byte order mark, a line that names the separator
    sqlite3_int64 first_line;
};

// How the bytes of a field are its value.
enum kind {
    kind_missing,
    kind_plain,       // the bytes
    kind_quoted,      // the bytes between quotes, with none in them
    kind_doubled,     // with "" for each quote, and after a single one what follows as it is
    kind_string,      // a JSON string without escapes
    kind_escaped,     // a JSON string with escapes
    kind_number,      // a JSON number
    kind_true, kind_false,
    kind_nested,      // a JSON array or object
};

struct field {
    unsigned offset, length; // in the record
    unsigned char kind;
};

struct name {
    char *text;
    size_t length;
};

// A reader of one file. Several may read the same file.
struct records {
    enum layout layout;
    char separator;
    int file;
    char *bytes; // what was read and is not passed yet, with room behind it for a vector that begins within
    size_t room, start, end;
    bool finished; // the file has nothing beyond bytes
    sqlite3_int64 line; // of the current record, counted from 1
    sqlite3_int64 lines_below; // newlines of the current record
    struct field *fields;
    int count, field_room;
    // The members of objects that are known, for JSON Lines; shared by the readers of a file.
    struct name *names;
    int *name_count;
    bool learn; // whether an unknown member is added to names
    const char *record; // where the current one begins
    char problem[400]; // why reading failed
};

enum outcome { outcome_record, outcome_end, outcome_failed };

// start_records goes to the first record. It returns false if there is no memory, or if the file cannot be read.
bool start_records(struct records *r, int file, const struct form *form);
void end_records(struct records *r);

// next_record reads a record, which stays until the next one is read. Lines without any are passed over.
enum outcome next_record(struct records *r);

// decoded_length is at least the length of a field's value; decode writes it and returns its length.
size_t decoded_length(const struct field *f);
size_t decode(const struct records *r, const struct field *f, char *to);

// Functions of the layouts. They return outcome_end if the record does not end in what was read.
enum outcome parse_delimited(struct records *r);
enum outcome parse_json_line(struct records *r);
bool add_field(struct records *r, int index, const char *from, const char *to, enum kind kind);

#endif

// What a text file has in it: its columns, their types, and its rows.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "result.h"
#include "table.h"

static bool ends_with(const char *name, const char *end) {
    size_t length = strlen(name), tail = strlen(end);
    return length >= tail && sqlite3_stricmp(name + length - tail, end) == 0;
}

static const char *format_of(const char *name) {
    if (ends_with(name, ".csv")) return "csv";
    if (ends_with(name, ".tsv") || ends_with(name, ".tab")) return "tsv";
    if (ends_with(name, ".jsonl") || ends_with(name, ".ndjson")) return "jsonl";
    fail("%s: its name does not say what it is; use a .csv, .tsv or .jsonl file, or name the format", name);
}

// check_start refuses files that are no text in UTF-8, and returns how long a byte order mark is.
static size_t check_start(const char *name, int file) {
    static const struct {
        const char *start;
        size_t length;
        const char *what;
    } others[] = {
        {"SQLite format 3", 16, "it is a SQLite database; use database_query"},
        {"PK\3\4", 4, "it is a ZIP file, as spreadsheets are; export it as CSV"},
        {"\x1F\x8B", 2, "it is compressed with gzip; decompress it first"},
        {"PAR1", 4, "it is a Parquet file; export it as CSV"},
        {"\xFF\xFE", 2, "it is text in UTF-16; convert it to UTF-8"},
        {"\xFE\xFF", 2, "it is text in UTF-16; convert it to UTF-8"},
    };
    char start[16];
    ssize_t length = read_at(file, start, sizeof start, 0);
    if (length < 0) fail("%s: it cannot be read", name);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if ((size_t)length >= others[i].length && memcmp(start, others[i].start, others[i].length) == 0) fail("%s: %s", name, others[i].what);
    }
    return length >= 3 && memcmp(start, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

// separator_of returns the character among comma, semicolon, tab and bar that separates most fields of the first line.
static char separator_of(const char *name, int file, size_t from) {
    static const char candidates[] = {',', ';', '\t', '|'};
    int counts[sizeof candidates] = {0};
    char *start = malloc(64 * 1024);
    if (!start) fail("out of memory");
    ssize_t length = read_at(file, start, 64 * 1024, (off_t)from);
    if (length < 0) fail("%s: it cannot be read", name);
    bool quoted = false;
    for (ssize_t i = 0; i < length && (quoted || start[i] != '\n'); i++) {
        if (start[i] == '"') quoted = !quoted;
        for (size_t k = 0; k < sizeof candidates; k++) counts[k] += !quoted && start[i] == candidates[k];
    }
    free(start);
    size_t best = 0;
    for (size_t k = 1; k < sizeof candidates; k++) {
        if (counts[k] > counts[best]) best = k;
    }
    return candidates[best];
}

static bool is_taken(const struct table *t, int count, const char *name) {
    for (int i = 0; i < count; i++) {
        if (sqlite3_stricmp(t->names[i].text, name) == 0) return true;
    }
    return false;
}

// name_column gives a column a name that no other one has, in upper or lower case: SQL knows no difference.
static void name_column(struct table *t, int index, const char *wanted) {
    char *name = wanted && *wanted ? sqlite3_mprintf("%s", wanted) : sqlite3_mprintf("column_%d", index + 1);
    for (int again = 2; name && is_taken(t, index, name); again++) {
        sqlite3_free(name);
        name = wanted && *wanted ? sqlite3_mprintf("%s_%d", wanted, again) : sqlite3_mprintf("column_%d_%d", index + 1, again);
    }
    if (!name) fail("out of memory: the columns have long names");
    t->names[index] = (struct name){name, strlen(name)};
}

// header_name returns a field of the header without spaces around it.
static char *header_name(const struct records *r, const struct field *f, const char *file_name) {
    char *name = malloc(decoded_length(f) + 1);
    if (!name) fail("out of memory: the columns have long names");
    size_t length = decode(r, f, name), from = 0;
    if (memchr(name, 0, length)) fail("%s: line 1: the name of a column has a NUL character in it", file_name);
    while (length > 0 && (name[length - 1] == ' ' || name[length - 1] == '\t')) length--;
    while (from < length && (name[from] == ' ' || name[from] == '\t')) from++;
    memmove(name, name + from, length - from);
    name[length - from] = 0;
    return name;
}

static void read_header(struct table *t, struct records *r) {
    switch (next_record(r)) {
    case outcome_failed:
        fail("%s: %s", t->file_name, r->problem);
    case outcome_end:
        fail("%s: the file is empty", t->file_name);
    default:
        break;
    }
    for (int i = 0; i < r->count; i++) {
        char *name = header_name(r, &r->fields[i], t->file_name);
        name_column(t, i, name);
        free(name);
    }
    t->columns = r->count;
}

// Members of JSON objects differ in case alone more often than columns of CSV do.
static void rename_members(struct table *t) {
    for (int i = 0; i < t->columns; i++) {
        const char *name = t->names[i].text;
        if (strlen(name) != t->names[i].length) fail("%s: the name of a member has a NUL character in it", t->file_name);
        if (!*name || is_taken(t, i, name)) {
            fail("%s: the objects have members whose names are empty or differ only in case, such as \"%s\"; SQL cannot tell these apart", t->file_name, name);
        }
    }
}

struct table *scan(const char *name, const char *file_name, const char *format, bool header) {
    struct table *t = calloc(1, sizeof *t);
    unsigned *seen = calloc(column_limit, sizeof *seen);
    if (!t || !seen) fail("out of memory");
    t->name = name;
    t->file_name = file_name;
    t->header = header;
    if (!format) format = format_of(file_name);
    resolve(file_name, t->path, sizeof t->path);
    int file = open_regular(file_name, t->path);
    size_t mark = check_start(file_name, file);
    t->layout = strcmp(format, "jsonl") == 0 ? layout_json_lines : layout_delimited;
    t->separator = strcmp(format, "tsv") == 0 ? '\t' : ',';
    if (strcmp(format, "csv") == 0) t->separator = separator_of(file_name, file, mark);
    struct records r = {.names = t->names, .name_count = &t->columns, .learn = true};
    if (!start_records(&r, file, t->layout, t->separator)) fail("out of memory");
    lseek(file, (off_t)mark, SEEK_SET);
    if (t->layout == layout_delimited && header) read_header(t, &r);
    enum outcome got;
    while ((got = next_record(&r)) == outcome_record) {
        t->rows++;
        if (t->layout == layout_delimited) {
            for (; t->columns < r.count; t->columns++) name_column(t, t->columns, NULL);
        }
        for (int i = 0; i < r.count; i++) seen[i] = see(seen[i], &r, &r.fields[i]);
    }
    if (got == outcome_failed) fail("%s: %s", file_name, r.problem);
    if (t->layout == layout_json_lines) rename_members(t);
    if (t->columns == 0) fail("%s: the file has no rows", file_name);
    for (int i = 0; i < t->columns; i++) t->types[i] = type_of(seen[i], t->layout);
    end_records(&r);
    close(file);
    free(seen);
    return t;
}

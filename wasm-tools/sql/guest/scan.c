// What a text file has in it: its columns, their types, and its rows.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "names.h"
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

// find_form looks at how the file begins: a byte order mark, and in CSV which character among comma, semicolon, tab and bar
// separates most fields of the first line. A line such as sep=; says so itself, as spreadsheets have it.
static void find_form(struct form *form, const char *name, int file, const char *format) {
    static const char candidates[] = {',', ';', '\t', '|'};
    int counts[sizeof candidates] = {0};
    form->start = check_start(name, file);
    form->first_line = 1;
    form->layout = strcmp(format, "jsonl") == 0 ? layout_json_lines : layout_delimited;
    form->separator = strcmp(format, "tsv") == 0 ? '\t' : ',';
    if (strcmp(format, "csv") != 0) return;
    char *start = malloc(64 * 1024);
    if (!start) fail("out of memory");
    ssize_t length = read_at(file, start, 64 * 1024, (off_t)form->start);
    if (length < 0) fail("%s: it cannot be read", name);
    bool named = length > 5 && memcmp(start, "sep=", 4) == 0 && memchr(candidates, start[4], sizeof candidates);
    size_t behind = named && start[5] == '\r' ? 6 : 5; // where a line that names the separator ends
    if (named && (ssize_t)behind < length && start[behind] == '\n') {
        form->separator = start[4];
        form->start += behind + 1;
        form->first_line = 2;
        free(start);
        return;
    }
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
    form->separator = candidates[best];
}

// header_name returns a field of the header without spaces around it.
static char *header_name(const struct records *r, const struct field *f, const char *file_name) {
    char *name = malloc(decoded_length(f) + 1);
    if (!name) fail("out of memory: the columns have long names");
    size_t length = decode(r, f, name), from = 0;
    if (memchr(name, 0, length)) fail("%s: line %lld: the name of a column has a NUL character in it", file_name, r->line);
    while (length > 0 && (name[length - 1] == ' ' || name[length - 1] == '\t')) length--;
    while (from < length && (name[from] == ' ' || name[from] == '\t')) from++;
    memmove(name, name + from, length - from);
    name[length - from] = 0;
    return name;
}

// unquoted returns where the part of a field begins that is not in quotes.
static const char *unquoted(const struct records *r, const struct field *f) {
    const char *p = r->record + f->offset, *end = p + f->length;
    if (f->kind == kind_plain) return p;
    while (f->kind == kind_doubled && (p = memchr(p, '"', (size_t)(end - p)))) {
        if (p + 1 == end || p[1] != '"') return p + 1;
        p += 2;
    }
    return end;
}

// refuse_returns refuses a file whose lines end in CR alone: all of it would be one record.
static void refuse_returns(const struct records *r, const char *file_name) {
    for (int i = 0; i < r->count; i++) {
        const struct field *f = &r->fields[i];
        const char *from = unquoted(r, f), *end = r->record + f->offset + f->length;
        if (memchr(from, '\r', (size_t)(end - from))) {
            fail("%s: line %lld: it has a carriage return (CR) without a newline (LF); write the file with LF or CRLF at the ends of lines", file_name, r->line);
        }
    }
}

static void read_header(struct table *t, struct records *r) {
    static char *wanted[column_limit];
    switch (next_record(r)) {
    case outcome_failed:
        fail("%s: %s", t->file_name, r->problem);
    case outcome_end:
        fail("%s: the file is empty", t->file_name);
    default:
        break;
    }
    refuse_returns(r, t->file_name);
    for (int i = 0; i < r->count; i++) wanted[i] = header_name(r, &r->fields[i], t->file_name);
    name_columns(t, wanted, r->count);
    for (int i = 0; i < r->count; i++) free(wanted[i]);
}

static void name_members(struct table *t, int count) {
    static char *wanted[column_limit];
    for (int i = 0; i < count; i++) {
        wanted[i] = t->members[i].text;
        if (strlen(wanted[i]) != t->members[i].length) fail("%s: the name of a member has a NUL character in it", t->file_name);
    }
    name_columns(t, wanted, count);
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
    find_form(&t->form, file_name, file, format);
    bool delimited = t->form.layout == layout_delimited;
    struct records r = {.names = t->members, .name_count = &t->columns, .learn = true};
    if (!start_records(&r, file, &t->form)) fail("out of memory");
    if (delimited && header) read_header(t, &r);
    enum outcome got;
    while ((got = next_record(&r)) == outcome_record) {
        if (t->rows++ == 0 && delimited) refuse_returns(&r, file_name);
        if (delimited) name_more(t, r.count);
        for (int i = 0; i < r.count; i++) seen[i] = see(seen[i], &r, &r.fields[i]);
    }
    if (got == outcome_failed) fail("%s: %s", file_name, r.problem);
    if (t->rows == 0 && t->columns == 0) fail("%s: the file has no rows", file_name);
    if (t->columns == 0) fail("%s: the objects are empty, so there are no columns", file_name);
    if (!delimited) name_members(t, t->columns);
    for (int i = 0; i < t->columns; i++) t->types[i] = type_of(seen[i], t->form.layout);
    end_records(&r);
    close(file);
    free(seen);
    return t;
}

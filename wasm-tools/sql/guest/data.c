#include "data.h"

#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "result.h"
#include "statement.h"
#include "table.h"

enum { tables_limit = 8 };

// The files of the call, and what they were when it began.
static struct {
    char path[8400];
    struct version version;
} watched[tables_limit + 1];
static int watched_count;

static void watch(const char *name) {
    resolve(name, watched[watched_count].path, sizeof watched->path);
    watched[watched_count].version = version_of(watched[watched_count].path);
    watched_count++;
}

static bool files_changed(void) {
    for (int i = 0; i < watched_count; i++) {
        if (!same_version(watched[i].version, version_of(watched[i].path))) return true;
    }
    return false;
}

_Noreturn void describe_data(struct arguments *a) {
    watch(a->knowledge_id);
    struct table *t = scan("data", a->knowledge_id, a->format, a->header);
    if (files_changed()) fail("%s was changed while it was read; call again", a->knowledge_id);
    out_raw("{\"success\":true,\"data\":{\"columns\":[");
    for (int i = 0; i < t->columns; i++) {
        out_raw(i > 0 ? ",{\"name\":" : "{\"name\":");
        out_string(t->names[i].text, t->names[i].length);
        out_raw(",\"type\":\"");
        out_raw(type_name(t->types[i]));
        out_raw("\"}");
    }
    out_raw("],\"row_count\":");
    out_integer(t->rows);
    out_raw("}}");
    out_finish();
    abort();
}

static void check_name(const char *name) {
    size_t length = strlen(name);
    if (length == 0 || length > 100) fail("tables: the name of a table has 1 to 100 bytes");
    if (sqlite3_stricmp(name, "data") == 0) fail("tables: data is the file of knowledge_id; choose another name");
    if (sqlite3_strnicmp(name, "sqlite_", 7) == 0 || sqlite3_stricmp(name, "file to load") == 0) fail("tables: %s is reserved; choose another name", name);
}

static void load_tables(sqlite3 *core, sqlite3 *db, struct arguments *a) {
    sqlite3_stmt *each = members(core, a, "$.tables");
    while (sqlite3_step(each) == SQLITE_ROW) {
        char *name = text_of(each, 0, "the name of a table"), *file = text_of(each, 2, "the path of a file");
        check_name(name);
        if (watched_count > tables_limit) fail("tables has more than %d files", tables_limit);
        watch(file);
        load(db, scan(name, file, NULL, true));
    }
    sqlite3_finalize(each);
}

_Noreturn void analyse_data(sqlite3 *core, struct arguments *a) {
    sqlite3 *db = NULL;
    struct source source = {a->knowledge_id, files_changed};
    if (sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, NULL) != SQLITE_OK) fail("out of memory");
    confine(db);
    // This is also how many rows are sorted at a time before they are merged.
    if (sqlite3_exec(db, "PRAGMA cache_size = -8000", NULL, NULL, NULL) != SQLITE_OK) fail("out of memory");
    watch(a->knowledge_id);
    attach(db, scan("data", a->knowledge_id, a->format, a->header));
    if (a->has_tables) load_tables(core, db, a);
    forbid_writing(db);
    answer(core, db, a, source);
}

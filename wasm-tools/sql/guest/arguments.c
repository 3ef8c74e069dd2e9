#include "arguments.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "result.h"

enum { input_limit = 2 * 1024 * 1024 };

static char *read_input(void) {
    size_t length = 0, room = 64 * 1024;
    char *text = malloc(room + 1);
    for (;;) {
        if (!text) fail("out of memory: the arguments are too long");
        ssize_t n = read(STDIN_FILENO, text + length, room - length);
        if (n < 0) fail("the arguments cannot be read");
        if (n == 0) break;
        length += (size_t)n;
        if (length > input_limit) fail("the arguments have more than %d bytes", input_limit);
        if (length == room) text = realloc(text, (room *= 2) + 1);
    }
    text[length] = 0;
    return text;
}

sqlite3_stmt *members(sqlite3 *db, const struct arguments *a, const char *path) {
    sqlite3_stmt *statement = NULL;
    static const char sql[] = "SELECT key, type, iif(type IN ('array', 'object'), value, atom) FROM json_each(?1, ?2)";
    int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 1, a->text, -1, SQLITE_STATIC);
    if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 2, path, -1, SQLITE_STATIC);
    if (code != SQLITE_OK) fail("the arguments cannot be read: %s", sqlite3_errmsg(db));
    return statement;
}

char *text_of(sqlite3_stmt *statement, int column, const char *what) {
    const char *text = (const char *)sqlite3_column_text(statement, column);
    if (!text) fail("out of memory: %s is too long", what);
    if (strlen(text) != (size_t)sqlite3_column_bytes(statement, column)) fail("%s has a NUL character in it; leave it out", what);
    char *copy = strdup(text);
    if (!copy) fail("out of memory: %s is too long", what);
    return copy;
}

void read_arguments(sqlite3 *db, struct arguments *a) {
    *a = (struct arguments){.header = true, .limit = 100};
    a->text = read_input();
    sqlite3_stmt *each = members(db, a, "$");
    int code;
    while ((code = sqlite3_step(each)) == SQLITE_ROW) {
        const char *key = (const char *)sqlite3_column_text(each, 0);
        if (!key) fail("the arguments must be an object");
        if (strcmp(key, "sql") == 0) a->sql = text_of(each, 2, key);
        else if (strcmp(key, "database") == 0) a->database = text_of(each, 2, key);
        else if (strcmp(key, "knowledge_id") == 0) a->knowledge_id = text_of(each, 2, key);
        else if (strcmp(key, "format") == 0) a->format = text_of(each, 2, key);
        else if (strcmp(key, "header") == 0) a->header = sqlite3_column_int(each, 2);
        else if (strcmp(key, "limit") == 0) a->limit = sqlite3_column_int64(each, 2);
        else if (strcmp(key, "offset") == 0) a->offset = sqlite3_column_int64(each, 2);
        else if (strcmp(key, "params") == 0) a->has_params = true;
        else if (strcmp(key, "tables") == 0) a->has_tables = true;
        else if (strcmp(key, "project_id") != 0) fail("there is no parameter %s", key);
    }
    if (code != SQLITE_DONE) fail("the arguments are not the JSON object that this tool takes: %s", sqlite3_errmsg(db));
    sqlite3_finalize(each);
}

// Runs SQL with a native build of the SQLite that the tools have, for tests to compare with and to make
// databases. It has no code in common with the tools.
//
//   native DATABASE [abandon] < STATEMENTS
//
// Statements end in NUL. Of each it prints its columns, its rows, and "ok" or "error". A value is a letter and, in
// hexadecimal digits, the bytes of a text or blob. With abandon it ends as a crash would, and leaves logs and journals.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sqlite3.h"

static void print_bytes(char kind, const void *bytes, int count) {
    printf(" %c", kind);
    for (int i = 0; i < count; i++) printf("%02x", ((const unsigned char *)bytes)[i]);
}

static void print_value(sqlite3_stmt *statement, int i) {
    switch (sqlite3_column_type(statement, i)) {
    case SQLITE_NULL: printf(" n"); break;
    case SQLITE_INTEGER: printf(" i%lld", (long long)sqlite3_column_int64(statement, i)); break;
    case SQLITE_FLOAT: printf(" r%.17g", sqlite3_column_double(statement, i)); break;
    case SQLITE_TEXT: {
        const unsigned char *text = sqlite3_column_text(statement, i);
        print_bytes('t', text, sqlite3_column_bytes(statement, i));
        break;
    }
    default: {
        const void *blob = sqlite3_column_blob(statement, i);
        print_bytes('b', blob, sqlite3_column_bytes(statement, i));
    }
    }
}

static void run(sqlite3 *db, const char *sql) {
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK && statement) {
        printf("columns");
        for (int i = 0; i < sqlite3_column_count(statement); i++) {
            const char *name = sqlite3_column_name(statement, i);
            print_bytes('t', name, (int)strlen(name));
        }
        printf("\n");
        while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
            printf("row");
            for (int i = 0; i < sqlite3_column_count(statement); i++) print_value(statement, i);
            printf("\n");
        }
    }
    if (code == SQLITE_OK || code == SQLITE_DONE) printf("ok\n");
    else printf("error %s\n", sqlite3_errmsg(db));
    sqlite3_finalize(statement);
}

int main(int count, char **words) {
    sqlite3 *db;
    size_t length = 0, room = 1 << 20;
    char *text = malloc(room);
    if (count < 2 || sqlite3_open(words[1], &db) != SQLITE_OK) return 2;
    sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    for (size_t n; (n = fread(text + length, 1, room - length, stdin)) > 0;) {
        length += n;
        if (length == room && !(text = realloc(text, room *= 2))) return 2;
    }
    for (size_t at = 0; at < length; at += strlen(text + at) + 1) run(db, text + at);
    fflush(stdout);
    if (count > 2 && strcmp(words[2], "abandon") == 0) _exit(0);
    return sqlite3_close(db) == SQLITE_OK ? 0 : 1;
}

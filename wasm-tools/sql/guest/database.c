#include "database.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "nesting.h"
#include "result.h"
#include "statement.h"

static char path[8400], log_path[8400], journal_path[8400];
static struct version version, log_version, journal_version;

static bool database_changed(void) {
    return !same_version(version, version_of(path)) || !same_version(log_version, version_of(log_path)) ||
           !same_version(journal_version, version_of(journal_path));
}

static bool has_extension(const char *name) {
    static const char *const extensions[] = {".db", ".db3", ".sqlite", ".sqlite3", ".s3db", ".sl3"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof extensions / sizeof *extensions; i++) {
        if (sqlite3_stricmp(dot, extensions[i]) == 0) return true;
    }
    return false;
}

// the_only_database returns the name of the one database that lies at the top of the project.
static char *the_only_database(void) {
    char *only = NULL;
    sqlite3_str *names = sqlite3_str_new(NULL);
    int count = 0;
    DIR *dir = opendir("/project");
    if (!dir) fail("the project cannot be listed; name the file in database");
    for (struct dirent *entry; (entry = readdir(dir));) {
        char file[8400];
        struct version v;
        if (!has_extension(entry->d_name)) continue;
        resolve(entry->d_name, file, sizeof file);
        v = version_of(file);
        if (!v.exists) continue;
        if (++count <= 20) sqlite3_str_appendf(names, "%s%s", count > 1 ? ", " : "", entry->d_name);
        free(only);
        if (!(only = strdup(entry->d_name))) fail("out of memory: the project has too many files");
    }
    closedir(dir);
    if (count == 0) fail("there is no SQLite database at the top of the project; name the file in database, such as data/shop.db");
    if (count > 1) fail("the project has %d databases: %s; name one in database", count, sqlite3_str_value(names));
    return only;
}

// check_start refuses what SQLite could tell of only in its own words.
static void check_start(const char *name) {
    static const char magic[16] = "SQLite format 3";
    char start[100];
    int file = open_regular(name, path);
    ssize_t length = read_at(file, start, sizeof start, 0);
    close(file);
    if (length < 0) fail("%s cannot be read", name);
    if (length == 0) return; // an empty file is an empty database
    if (length < (ssize_t)sizeof start || memcmp(start, magic, sizeof magic) != 0) {
        fail("%s is not a SQLite database, or it is encrypted; data_analysis reads CSV, TSV and JSON Lines", name);
    }
}

// warn_of_views leaves words for the case that views of views of views are more than the stack has room for.
static void warn_of_views(sqlite3 *db) {
    sqlite3_stmt *views = NULL;
    int count = 0;
    bool deep = false;
    if (sqlite3_prepare_v2(db, "SELECT sql FROM sqlite_schema WHERE type = 'view'", -1, &views, NULL) != SQLITE_OK) return;
    while (!deep && sqlite3_step(views) == SQLITE_ROW) {
        const char *sql = (const char *)sqlite3_column_text(views, 0);
        deep = ++count > nesting_limit || (sql && is_deep(sql));
    }
    sqlite3_finalize(views);
    if (deep) fputs("the database has views that are deep, or very many; one that leads through hundreds of others cannot be queried\n", stderr);
}

_Noreturn void query_database(sqlite3 *core, struct arguments *a) {
    if (!a->database) a->database = the_only_database();
    resolve(a->database, path, sizeof path);
    sqlite3_snprintf(sizeof log_path, log_path, "%s-wal", path);
    sqlite3_snprintf(sizeof journal_path, journal_path, "%s-journal", path);
    struct source source = {a->database, database_changed};
    version = version_of(path);
    log_version = version_of(log_path);
    journal_version = version_of(journal_path);
    check_start(a->database);
    sqlite3 *db = NULL;
    int code = sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL);
    if (!db) fail("out of memory: the database cannot be opened");
    if (code != SQLITE_OK) fail_with(db, code, source);
    confine(db);
    // Without shared memory, a write-ahead log can be read only in this mode.
    code = sqlite3_exec(db, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA cell_size_check = ON; PRAGMA cache_size = -8000", NULL, NULL, NULL);
    if (code != SQLITE_OK) fail_with(db, code, source);
    forbid_writing(db);
    // The schema is read here, so that errors in it are told as such.
    code = sqlite3_exec(db, "SELECT 1 FROM sqlite_schema", NULL, NULL, NULL);
    if (code != SQLITE_OK) fail_with(db, code, source);
    warn_of_views(db);
    answer(core, db, a, source);
}

#include "statement.h"

#include <stdlib.h>
#include <string.h>

#include "nesting.h"
#include "result.h"
#include "statistics.h"

// What the authorizer has refused last.
static char refused[300];

// Pragmas that only look. An argument of theirs is a name or a number, except for those that set a
// value with it.
static const char *const pragmas[] = {
    "application_id", "collation_list", "compile_options", "data_version", "database_list", "encoding", "foreign_key_check",
    "foreign_key_list", "freelist_count", "function_list", "index_info", "index_list", "index_xinfo", "integrity_check",
    "module_list", "page_count", "page_size", "pragma_list", "quick_check", "schema_version", "table_info", "table_list",
    "table_xinfo", "user_version",
};
static const char *const settings[] = {"application_id", "encoding", "page_size", "schema_version", "user_version"};

static bool is_among(const char *name, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (sqlite3_stricmp(name, names[i]) == 0) return true;
    }
    return false;
}

static bool pragma_reads(const char *name, const char *argument) {
    if (!is_among(name, pragmas, sizeof pragmas / sizeof *pragmas)) return false;
    return !argument || !is_among(name, settings, sizeof settings / sizeof *settings);
}

static const char *action_name(int action) {
    switch (action) {
    case SQLITE_INSERT: return "INSERT";
    case SQLITE_UPDATE: return "UPDATE";
    case SQLITE_DELETE: return "DELETE";
    case SQLITE_ATTACH: return "ATTACH";
    case SQLITE_DETACH: return "DETACH";
    case SQLITE_TRANSACTION: return "a transaction";
    case SQLITE_SAVEPOINT: return "SAVEPOINT";
    case SQLITE_ANALYZE: return "ANALYZE";
    case SQLITE_REINDEX: return "REINDEX";
    }
    return "changing the schema";
}

static int authorize(void *unused, int action, const char *first, const char *second, const char *database, const char *trigger) {
    (void)unused, (void)database, (void)trigger;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_FUNCTION:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_PRAGMA:
        if (pragma_reads(first, second)) return SQLITE_OK;
        sqlite3_snprintf(sizeof refused, refused, "PRAGMA %s%s", first, second ? " with a value" : "");
        return SQLITE_DENY;
    }
    // What a statement does to the schema, SQLite does to a table.
    bool of_schema = first && sqlite3_strnicmp(first, "sqlite_", 7) == 0;
    sqlite3_snprintf(sizeof refused, refused, "%s", of_schema ? "changing the schema" : action_name(action));
    return SQLITE_DENY;
}

void confine(sqlite3 *db) {
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    // A name in double quotes that is no column is a mistake, not a text.
    sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 32 * 1024 * 1024);
    sqlite3_limit(db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(db, SQLITE_LIMIT_TRIGGER_DEPTH, 1);
    if (add_statistics(db) != SQLITE_OK) fail("out of memory");
}

void forbid_writing(sqlite3 *db) {
    sqlite3_exec(db, "PRAGMA query_only = ON", NULL, NULL, NULL);
    sqlite3_set_authorizer(db, authorize, NULL);
}

// add_names adds the tables that there are to a message, as far as they have room.
static void add_names(sqlite3 *db, sqlite3_str *message) {
    sqlite3_stmt *names = NULL;
    static const char sql[] = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
    int count = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &names, NULL) != SQLITE_OK) return;
    while (sqlite3_step(names) == SQLITE_ROW) {
        if (++count > 40) {
            sqlite3_str_appendf(message, ", and more");
            break;
        }
        sqlite3_str_appendf(message, "%s%.100s", count == 1 ? "; there are " : ", ", sqlite3_column_text(names, 0));
    }
    if (count == 0) sqlite3_str_appendf(message, "; the database has no tables");
    sqlite3_finalize(names);
}

// add_name adds a name as a statement has to write it.
static void add_name(sqlite3_str *message, const char *name) {
    bool plain = !(*name >= '0' && *name <= '9') && *name && !sqlite3_keyword_check(name, (int)strlen(name));
    for (const char *p = name; plain && *p; p++) {
        plain = *p == '_' || (*p >= '0' && *p <= '9') || ((*p | 32) >= 'a' && (*p | 32) <= 'z');
    }
    sqlite3_str_appendf(message, plain ? "%.100s" : "\"%.100w\"", name);
}

// add_columns adds the columns of the tables to a message, as far as they have room. Views are left out: what is in
// them is looked at to find their columns.
static void add_columns(sqlite3 *db, sqlite3_str *message) {
    sqlite3_stmt *columns = NULL;
    static const char sql[] = "SELECT t.name, c.name, c.cid FROM sqlite_schema t, pragma_table_xinfo(t.name) c "
                              "WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    int count = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &columns, NULL) != SQLITE_OK) return;
    while (sqlite3_step(columns) == SQLITE_ROW) {
        const char *table = (const char *)sqlite3_column_text(columns, 0), *column = (const char *)sqlite3_column_text(columns, 1);
        if (!table || !column) break;
        if (++count > 60) {
            sqlite3_str_appendf(message, ", and more");
            break;
        }
        if (sqlite3_column_int(columns, 2) > 0) {
            sqlite3_str_appendf(message, ", ");
        } else {
            sqlite3_str_appendf(message, count == 1 ? "; the columns of " : "; of ");
            add_name(message, table);
            sqlite3_str_appendf(message, " are ");
        }
        add_name(message, column);
    }
    sqlite3_finalize(columns);
}

_Noreturn void fail_with(sqlite3 *db, int code, struct source source) {
    int extended = sqlite3_extended_errcode(db);
    if (source.changed && source.changed()) fail("%s was changed while it was read; call again", source.name);
    switch (code & 0xFF) {
    case SQLITE_NOMEM:
        fail("out of memory: sorting, grouping, DISTINCT and joins without an index keep their rows in memory, and large texts are there too; "
             "filter more rows, select fewer columns, or work on a part at a time");
    case SQLITE_TOOBIG:
        fail("%s", strcmp(sqlite3_errmsg(db), "string or blob too big") == 0 ? "a text or blob is larger than 32 MiB" : sqlite3_errmsg(db));
    case SQLITE_AUTH:
        fail("%s is not allowed: this tool only reads; write a SELECT", refused);
    case SQLITE_NOTADB:
        fail("%s is not a SQLite database, or it is encrypted", source.name);
    case SQLITE_CORRUPT:
        fail("%s is damaged: %s", source.name, sqlite3_errmsg(db));
    case SQLITE_IOERR:
        if (extended == SQLITE_IOERR_NOMEM) {
            fail("out of memory: too many rows to sort or to group; filter more rows, or select fewer columns");
        }
        fail("%s cannot be read: %s", source.name, sqlite3_errmsg(db));
    case SQLITE_CANTOPEN:
        fail("%s cannot be opened: %s", source.name, sqlite3_errmsg(db));
    case SQLITE_READONLY:
        if (extended == SQLITE_READONLY_ROLLBACK) {
            fail("%s has an unfinished transaction in %s-journal, which only a program that may write can undo; open it there once", source.name, source.name);
        }
        fail("%s can only be read; write a SELECT", source.name);
    }
    char text[3500];
    sqlite3_str *message = sqlite3_str_new(NULL);
    const char *said = sqlite3_errmsg(db);
    int at = sqlite3_error_offset(db);
    sqlite3_str_appendf(message, "%.2000s", said);
    if (strncmp(said, "no such table: ", 15) == 0) {
        add_names(db, message);
    } else if (strstr(said, " may not be modified")) { // SQLite looks at this before it asks the authorizer
        sqlite3_str_appendf(message, "; this tool only reads; write a SELECT");
    } else if (strncmp(said, "no such column: ", 16) == 0) {
        sqlite3_str_appendf(message, "; texts stand in 'single quotes'");
        add_columns(db, message);
    } else if (at >= 0) {
        sqlite3_str_appendf(message, ", at byte %d of the statement", at + 1);
    }
    sqlite3_snprintf(sizeof text, text, "%s", sqlite3_str_errcode(message) == SQLITE_OK ? sqlite3_str_value(message) : said);
    fail("%s", text);
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql, struct source source) {
    sqlite3_stmt *statement = NULL;
    const char *rest = sql;
    if (is_deep(sql)) fail("sql is too deep: it may have %d SELECTs, and as many parentheses within each other", nesting_limit);
    while (!statement && *rest) {
        int code = sqlite3_prepare_v2(db, rest, -1, &statement, &rest);
        if (code != SQLITE_OK) fail_with(db, code, source);
    }
    if (!statement) fail("sql is empty; write a SELECT");
    while (*rest) { // of which only comments and semicolons may be left
        sqlite3_stmt *second = NULL;
        int code = sqlite3_prepare_v2(db, rest, -1, &second, &rest);
        if (code != SQLITE_OK || second) fail("sql has more than one statement; write one, and make a call for each");
    }
    if (!sqlite3_stmt_readonly(statement) || sqlite3_column_count(statement) == 0) {
        fail("the statement is not allowed: this tool only reads; write a SELECT");
    }
    return statement;
}

static void bind_one(sqlite3_stmt *statement, int index, sqlite3_stmt *member, struct source source) {
    int code = sqlite3_bind_value(statement, index, sqlite3_column_value(member, 2));
    if (code != SQLITE_OK) fail_with(sqlite3_db_handle(statement), code, source);
}

// bind_array binds params that are a list: one for each parameter of the statement.
static void bind_array(sqlite3_stmt *statement, sqlite3_stmt *each, struct source source) {
    int wanted = sqlite3_bind_parameter_count(statement), given = 0;
    while (sqlite3_step(each) == SQLITE_ROW) {
        if (++given <= wanted) bind_one(statement, given, each, source);
    }
    if (given != wanted) fail("the statement has %d parameters, and params has %d values", wanted, given);
}

// bind_object binds params by name, with or without the character before the name.
static void bind_object(sqlite3_stmt *statement, sqlite3_stmt *each, struct source source) {
    int wanted = sqlite3_bind_parameter_count(statement);
    bool *bound = calloc((size_t)wanted + 1, sizeof *bound);
    if (!bound) fail("out of memory: too many parameters");
    while (sqlite3_step(each) == SQLITE_ROW) {
        char *key = text_of(each, 0, "the name of a parameter");
        bool found = false;
        for (int i = 1; i <= wanted; i++) {
            const char *name = sqlite3_bind_parameter_name(statement, i);
            if (!name || (strcmp(name, key) != 0 && strcmp(name + 1, key) != 0)) continue;
            bind_one(statement, i, each, source);
            bound[i] = found = true;
        }
        if (!found) fail("the statement has no parameter :%s", key);
        free(key);
    }
    for (int i = 1; i <= wanted; i++) {
        const char *name = sqlite3_bind_parameter_name(statement, i);
        if (!name) fail("the statement has parameters without names; give params as a list");
        if (!bound[i]) fail("params has no value for %s", name);
    }
    free(bound);
}

static void bind(sqlite3 *core, sqlite3_stmt *statement, const struct arguments *a, struct source source) {
    if (!a->has_params) {
        int wanted = sqlite3_bind_parameter_count(statement);
        if (wanted > 0) fail("the statement has %d parameters; give their values in params", wanted);
        return;
    }
    bool is_list = false;
    sqlite3_stmt *each = members(core, a, "$");
    while (sqlite3_step(each) == SQLITE_ROW) {
        const char *key = (const char *)sqlite3_column_text(each, 0), *type = (const char *)sqlite3_column_text(each, 1);
        if (key && type && strcmp(key, "params") == 0) is_list = strcmp(type, "array") == 0;
    }
    sqlite3_finalize(each);
    each = members(core, a, "$.params");
    if (is_list) bind_array(statement, each, source);
    else bind_object(statement, each, source);
    sqlite3_finalize(each);
}

static int skip(sqlite3_stmt *statement, sqlite3_int64 rows) {
    int code = sqlite3_step(statement);
    while (code == SQLITE_ROW && rows-- > 0) code = sqlite3_step(statement);
    return code;
}

static void out_row(sqlite3_stmt *statement, int columns) {
    out_raw("[");
    for (int i = 0; i < columns; i++) {
        if (i > 0) out_raw(",");
        out_value(sqlite3_column_value(statement, i));
    }
    out_raw("]");
}

_Noreturn void answer(sqlite3 *core, sqlite3 *db, const struct arguments *a, struct source source) {
    sqlite3_stmt *statement = prepare(db, a->sql, source);
    bind(core, statement, a, source);
    int columns = sqlite3_column_count(statement);
    int code = skip(statement, a->offset);
    out_raw("{\"success\":true,\"data\":{\"columns\":[");
    for (int i = 0; i < columns; i++) {
        const char *name = sqlite3_column_name(statement, i);
        if (!name) fail("out of memory: the columns have long names");
        if (i > 0) out_raw(",");
        out_string(name, strlen(name));
    }
    out_raw("],\"rows\":[");
    size_t start = out_mark();
    sqlite3_int64 rows = 0;
    bool truncated = false;
    for (; code == SQLITE_ROW; code = sqlite3_step(statement)) {
        size_t before = out_mark();
        if ((truncated = rows == a->limit)) break;
        if (rows > 0) out_raw(",");
        out_row(statement, columns);
        if (out_mark() - start > rows_limit) {
            if (rows == 0) fail("a row has more than %d bytes; select fewer columns, or parts of them with substr()", rows_limit);
            out_rewind(before);
            truncated = true;
            break;
        }
        rows++;
    }
    if (code != SQLITE_ROW && code != SQLITE_DONE) fail_with(db, code, source);
    if (source.changed()) fail("%s was changed while it was read; call again", source.name);
    out_raw(truncated ? "],\"truncated\":true,\"next_offset\":" : "],\"truncated\":false");
    if (truncated) out_integer(a->offset + rows);
    out_raw("}}");
    out_finish();
    abort();
}

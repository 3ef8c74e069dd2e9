#include "table.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "result.h"

struct module_table {
    sqlite3_vtab base;
    struct table *table;
};

struct cursor {
    sqlite3_vtab_cursor base;
    struct records records;
    sqlite3_int64 row;
    bool ended;
};

static int problem(sqlite3_vtab *base, const char *words) {
    struct table *table = ((struct module_table *)base)->table;
    sqlite3_free(base->zErrMsg);
    base->zErrMsg = sqlite3_mprintf("%s: %s", table->file_name, words);
    return SQLITE_ERROR;
}

static int connect(sqlite3 *db, void *context, int count, const char *const *words, sqlite3_vtab **made, char **message) {
    struct table *table = context;
    (void)count, (void)words, (void)message;
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql, "CREATE TABLE x(");
    for (int i = 0; i < table->columns; i++) {
        sqlite3_str_appendf(sql, "%s\"%w\" %s", i > 0 ? ", " : "", table->names[i].text, declared(table->types[i]));
    }
    sqlite3_str_appendf(sql, ")");
    char *text = sqlite3_str_finish(sql);
    if (!text) return SQLITE_NOMEM;
    int code = sqlite3_declare_vtab(db, text);
    sqlite3_free(text);
    if (code != SQLITE_OK) return code;
    struct module_table *m = calloc(1, sizeof *m);
    if (!m) return SQLITE_NOMEM;
    m->table = table;
    *made = &m->base;
    return SQLITE_OK;
}

static int disconnect(sqlite3_vtab *base) {
    free(base);
    return SQLITE_OK;
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info) {
    struct table *table = ((struct module_table *)base)->table;
    info->estimatedRows = table->rows > 0 ? table->rows : 1;
    info->estimatedCost = 100.0 * (double)info->estimatedRows;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **made) {
    struct table *table = ((struct module_table *)base)->table;
    struct cursor *c = calloc(1, sizeof *c);
    if (!c) return SQLITE_NOMEM;
    c->records.names = table->members;
    c->records.name_count = &table->columns;
    c->records.file = open_regular(table->file_name, table->path);
    *made = &c->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base) {
    struct cursor *c = (struct cursor *)base;
    close(c->records.file);
    end_records(&c->records);
    free(c);
    return SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *base) {
    struct cursor *c = (struct cursor *)base;
    switch (next_record(&c->records)) {
    case outcome_record:
        c->row++;
        return SQLITE_OK;
    case outcome_end:
        c->ended = true;
        return SQLITE_OK;
    default:
        return problem(base->pVtab, c->records.problem);
    }
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *text, int count, sqlite3_value **values) {
    struct cursor *c = (struct cursor *)base;
    struct table *table = ((struct module_table *)base->pVtab)->table;
    (void)number, (void)text, (void)count, (void)values;
    c->row = 0;
    c->ended = false;
    if (!start_records(&c->records, c->records.file, &table->form)) return SQLITE_NOMEM;
    if (table->form.layout == layout_delimited && table->header && next_record(&c->records) == outcome_failed) {
        return problem(base->pVtab, c->records.problem);
    }
    return next(base);
}

static int at_end(sqlite3_vtab_cursor *base) { return ((struct cursor *)base)->ended; }

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *row) {
    *row = ((struct cursor *)base)->row;
    return SQLITE_OK;
}

static void give_text(sqlite3_context *context, const struct records *r, const struct field *f) {
    if (f->kind != kind_doubled && f->kind != kind_escaped) {
        sqlite3_result_text(context, r->record + f->offset, (int)f->length, SQLITE_TRANSIENT);
        return;
    }
    char *copy = sqlite3_malloc64(decoded_length(f) + 1);
    if (!copy) {
        sqlite3_result_error_nomem(context);
        return;
    }
    sqlite3_result_text(context, copy, (int)decode(r, f, copy), sqlite3_free);
}

// give_number gives a number as one, and what is none as text.
static void give_number(sqlite3_context *context, const struct records *r, const struct field *f, bool real_column) {
    sqlite3_int64 integer;
    double real;
    switch (read_number(r->record + f->offset, f->length, &integer, &real)) {
    case number_integer:
        if (real_column) sqlite3_result_double(context, real);
        else sqlite3_result_int64(context, integer);
        return;
    case number_real:
        sqlite3_result_double(context, real);
        return;
    default:
        give_text(context, r, f);
    }
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int index) {
    const struct cursor *c = (const struct cursor *)base;
    const struct table *table = ((const struct module_table *)base->pVtab)->table;
    const struct records *r = &c->records;
    if (index >= r->count) return SQLITE_OK; // NULL
    const struct field *f = &r->fields[index];
    enum type type = table->types[index];
    switch ((enum kind)f->kind) {
    case kind_missing:
        break;
    case kind_plain:
        if (f->length == 0) break;
        if (type == type_text) give_text(context, r, f);
        else give_number(context, r, f, type == type_real);
        break;
    case kind_quoted:
        if (type == type_text) give_text(context, r, f);
        else if (f->length > 0) give_number(context, r, f, type == type_real);
        break;
    case kind_number:
        give_number(context, r, f, type == type_real);
        break;
    case kind_true:
    case kind_false:
        sqlite3_result_int(context, f->kind == kind_true);
        break;
    default:
        give_text(context, r, f);
    }
    return SQLITE_OK;
}

// There is no xUpdate, so nothing can be written.
static const sqlite3_module module = {
    .iVersion = 1,
    .xCreate = connect,
    .xConnect = connect,
    .xBestIndex = best_index,
    .xDisconnect = disconnect,
    .xDestroy = disconnect,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = filter,
    .xNext = next,
    .xEof = at_end,
    .xColumn = column,
    .xRowid = row_id,
};

static void run(sqlite3 *db, const struct table *table, char *sql) {
    int code = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    if ((code & 0xFF) == SQLITE_NOMEM) {
        fail("out of memory: %s does not fit; only the file of knowledge_id is read as a stream, so name the largest file there", table->file_name);
    }
    if (code != SQLITE_OK) fail("%s: %s", table->file_name, sqlite3_errmsg(db));
}

void attach(sqlite3 *db, struct table *table) {
    if (sqlite3_create_module(db, table->name, &module, table) != SQLITE_OK) fail("out of memory");
    run(db, table, sqlite3_mprintf("CREATE VIRTUAL TABLE \"%w\" USING \"%w\"", table->name, table->name));
}

void load(sqlite3 *db, struct table *table) {
    const char *name = table->name;
    table->name = "file to load";
    attach(db, table);
    run(db, table, sqlite3_mprintf("CREATE TABLE \"%w\" AS SELECT * FROM \"file to load\"; DROP TABLE \"file to load\"", name));
    table->name = name;
}

#include "names.h"

#include <stdlib.h>
#include <string.h>

#include "result.h"

static bool is_taken(const struct table *t, int count, const char *name) {
    for (int i = 0; i < count; i++) {
        if (t->names[i].text && sqlite3_stricmp(t->names[i].text, name) == 0) return true;
    }
    return false;
}

static void give(struct table *t, int index, char *name) {
    if (!name) fail("out of memory: the columns have long names");
    t->names[index] = (struct name){name, strlen(name)};
}

// as_utf8 replaces what is not UTF-8, which no statement could name.
static char *as_utf8(const char *name) {
    size_t length = strlen(name), used = 0;
    char *copy = sqlite3_malloc64(3 * length + 1);
    if (!copy) fail("out of memory: the columns have long names");
    for (const char *p = name, *end = name + length; p < end;) {
        size_t one = utf8_sequence((const unsigned char *)p, (size_t)(end - p));
        memcpy(copy + used, one ? p : "\xEF\xBF\xBD", one ? one : 3);
        used += one ? one : 3;
        p += one ? one : 1;
    }
    copy[used] = 0;
    return sqlite3_realloc64(copy, used + 1);
}

void name_columns(struct table *t, char *const *wanted, int count) {
    // The number that the next column of a name gets, by the first one that has it. Each number is tried once,
    // so that a header of one name alone takes no longer than another.
    static int next[column_limit];
    static int first[column_limit];
    // Names in the file come before names made up here.
    for (int i = 0; i < count; i++) {
        char *name = as_utf8(wanted[i]);
        first[i] = i;
        for (int k = 0; k < i && *name; k++) {
            if (t->names[k].text && sqlite3_stricmp(t->names[k].text, name) == 0) first[i] = k;
        }
        next[i] = 2;
        if (*name && first[i] == i) give(t, i, name);
        else sqlite3_free(name);
    }
    for (int i = 0; i < count; i++) {
        if (t->names[i].text) continue;
        char *base = *wanted[i] ? as_utf8(wanted[i]) : sqlite3_mprintf("column_%d", i + 1);
        char *name = *wanted[i] ? NULL : base;
        while (base && (!name || is_taken(t, count, name))) {
            if (name != base) sqlite3_free(name);
            name = sqlite3_mprintf("%s_%d", base, next[first[i]]++);
            if (!name) break;
        }
        if (name != base) sqlite3_free(base);
        give(t, i, name);
    }
    t->columns = count;
}

void name_more(struct table *t, int count) {
    for (; t->columns < count; t->columns++) {
        char *name = sqlite3_mprintf("column_%d", t->columns + 1);
        for (int again = 2; name && is_taken(t, t->columns, name); again++) {
            sqlite3_free(name);
            name = sqlite3_mprintf("column_%d_%d", t->columns + 1, again);
        }
        give(t, t->columns, name);
    }
}

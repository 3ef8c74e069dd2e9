// SQL for models: database_query on a SQLite file, data_schema and data_analysis on text files. The
// command line says which of the tools it is.
#include <stdio.h>
#include <string.h>

#include "arguments.h"
#include "data.h"
#include "database.h"
#include "result.h"

// ready makes a connection and runs what every call runs, so that calls resume a program that has done so.
static sqlite3 *ready(void) {
    sqlite3 *core = NULL;
    if (sqlite3_open_v2(":memory:", &core, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, NULL) != SQLITE_OK) fail("out of memory");
    sqlite3_exec(core, "SELECT key, type, atom, value FROM json_each('{\"sql\": \"SELECT 1\", \"limit\": 1}', '$')", NULL, NULL, NULL);
    return core;
}

int main(int count, char **words) {
    struct arguments a;
    sqlite3 *core = ready();
    read_arguments(core, &a);
    sqlite3_randomness(0, NULL); // seeded anew, since all calls resume the program where it reads
    const char *tool = count == 2 ? words[1] : "";
    if (strcmp(tool, "query") == 0) query_database(core, &a);
    if (strcmp(tool, "schema") == 0) describe_data(&a);
    if (strcmp(tool, "analysis") == 0) analyse_data(core, &a);
    fputs("want one argument: query, schema or analysis\n", stderr);
    return 2;
}

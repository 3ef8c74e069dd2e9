// The tool database_query.
#ifndef DATABASE_H
#define DATABASE_H

#include "arguments.h"

_Noreturn void query_database(sqlite3 *core, struct arguments *a);

#endif

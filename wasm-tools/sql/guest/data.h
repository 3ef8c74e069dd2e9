// The tools data_schema and data_analysis.
#ifndef DATA_H
#define DATA_H

#include "arguments.h"

_Noreturn void describe_data(struct arguments *a);
_Noreturn void analyse_data(sqlite3 *core, struct arguments *a);

#endif

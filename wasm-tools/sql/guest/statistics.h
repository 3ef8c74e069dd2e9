// Aggregates that SQLite lacks: median(x), percentile(x, p), stddev(x) and variance(x).
#ifndef STATISTICS_H
#define STATISTICS_H

#include "sqlite3.h"

// add_statistics returns a SQLite result code.
int add_statistics(sqlite3 *db);

#endif

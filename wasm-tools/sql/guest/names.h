// Names of columns, as SQL takes them.
#ifndef NAMES_H
#define NAMES_H

#include "table.h"

// name_columns names the columns by what the file calls them, of which each is in memory that the table keeps. Names
// are UTF-8 and differ in more than upper and lower case, since SQL knows no difference there.
void name_columns(struct table *t, char *const *wanted, int count);

// name_more names columns behind those of the header, up to count, by their positions.
void name_more(struct table *t, int count);

#endif

// How deep SQL goes. SQLite bounds the depth of expressions, and recurses as deep as subqueries, views and
// common table expressions go, which a sandbox has less stack for than a computer.
#ifndef NESTING_H
#define NESTING_H

#include <stdbool.h>

enum { nesting_limit = 500 };

// is_deep reports whether a statement has more parentheses in each other, or more SELECTs, than the limit.
// Texts, names in quotes and comments do not count.
bool is_deep(const char *sql);

#endif

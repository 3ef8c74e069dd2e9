#include "statistics.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

// What a median has seen. NULL and what is not a number are passed over, as avg does with NULL.
struct values {
    double *numbers;
    sqlite3_int64 count, room;
    double fraction; // between 0 and 1
    bool failed;
};

static bool is_number(sqlite3_value *value) {
    int type = sqlite3_value_numeric_type(value);
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

static void add_value(sqlite3_context *context, int count, sqlite3_value **given) {
    struct values *v = sqlite3_aggregate_context(context, sizeof *v);
    if (!v || v->failed) return;
    double fraction = 0.5;
    if (count == 2) {
        fraction = sqlite3_value_double(given[1]) / 100;
        if (!is_number(given[1]) || !(fraction >= 0 && fraction <= 1)) {
            v->failed = true;
            sqlite3_result_error(context, "the second argument of percentile() is a number from 0 to 100", -1);
            return;
        }
        if (v->count > 0 && fraction != v->fraction) {
            v->failed = true;
            sqlite3_result_error(context, "the second argument of percentile() is the same for all rows", -1);
            return;
        }
    }
    v->fraction = fraction;
    if (!is_number(given[0])) return;
    if (v->count == v->room) {
        sqlite3_int64 room = v->room ? v->room * 2 : 64;
        double *more = sqlite3_realloc64(v->numbers, (sqlite3_uint64)room * sizeof *more);
        if (!more) {
            v->failed = true;
            sqlite3_result_error_nomem(context);
            return;
        }
        v->numbers = more;
        v->room = room;
    }
    v->numbers[v->count++] = sqlite3_value_double(given[0]);
}

static int compare(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

// The value at the fraction of the way through the sorted numbers, between two of them if it falls there.
static void finish_values(sqlite3_context *context) {
    struct values *v = sqlite3_aggregate_context(context, 0);
    if (!v) return;
    if (!v->failed && v->count > 0) {
        qsort(v->numbers, (size_t)v->count, sizeof *v->numbers, compare);
        double at = v->fraction * (double)(v->count - 1);
        sqlite3_int64 below = (sqlite3_int64)at;
        double low = v->numbers[below], high = v->numbers[below + 1 < v->count ? below + 1 : below];
        sqlite3_result_double(context, low == high ? low : low + (high - low) * (at - (double)below));
    }
    sqlite3_free(v->numbers);
    v->numbers = NULL;
}

// Mean and sum of squared differences from it, by Welford's method, which keeps its precision.
struct moments {
    sqlite3_int64 count;
    double mean, squares;
};

static void add_moment(sqlite3_context *context, int count, sqlite3_value **given) {
    struct moments *m = sqlite3_aggregate_context(context, sizeof *m);
    (void)count;
    if (!m || !is_number(given[0])) return;
    double x = sqlite3_value_double(given[0]), difference = x - m->mean;
    m->count++;
    m->mean += difference / (double)m->count;
    m->squares += difference * (x - m->mean);
}

static void finish_variance(sqlite3_context *context) {
    struct moments *m = sqlite3_aggregate_context(context, 0);
    if (m && m->count > 1) sqlite3_result_double(context, m->squares / (double)(m->count - 1));
}

static void finish_deviation(sqlite3_context *context) {
    struct moments *m = sqlite3_aggregate_context(context, 0);
    if (m && m->count > 1) sqlite3_result_double(context, sqrt(m->squares / (double)(m->count - 1)));
}

int add_statistics(sqlite3 *db) {
    enum { flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS };
    int code = sqlite3_create_function_v2(db, "median", 1, flags, NULL, NULL, add_value, finish_values, NULL);
    if (code == SQLITE_OK) code = sqlite3_create_function_v2(db, "percentile", 2, flags, NULL, NULL, add_value, finish_values, NULL);
    if (code == SQLITE_OK) code = sqlite3_create_function_v2(db, "stddev", 1, flags, NULL, NULL, add_moment, finish_deviation, NULL);
    if (code == SQLITE_OK) code = sqlite3_create_function_v2(db, "variance", 1, flags, NULL, NULL, add_moment, finish_variance, NULL);
    return code;
}

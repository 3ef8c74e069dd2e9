#include "nesting.h"

#include <ctype.h>
#include <string.h>

#include "sqlite3.h"

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '$' || (c & 0x80); }

// behind returns where the text begins that follows a text, a name in quotes or a comment at p, or p.
static const char *behind(const char *p) {
    const char *end;
    if (*p == '\'' || *p == '"' || *p == '`' || *p == '[') {
        end = strchr(p + 1, *p == '[' ? ']' : *p);
    } else if (p[0] == '-' && p[1] == '-') {
        end = strchr(p, '\n');
    } else if (p[0] == '/' && p[1] == '*') {
        end = strstr(p + 2, "*/");
        if (end) end++;
    } else {
        return p;
    }
    return end ? end + 1 : p + strlen(p);
}

bool is_deep(const char *sql) {
    int depth = 0, selects = 0;
    for (const char *p = sql; *p;) {
        const char *next = behind(p);
        if (next > p) {
            p = next;
            continue;
        }
        if (is_word(*p)) {
            const char *from = p;
            while (is_word(*p)) p++;
            selects += p - from == 6 && sqlite3_strnicmp(from, "SELECT", 6) == 0;
        } else {
            depth += *p == '(' ? 1 : *p == ')' ? -1 : 0;
            p++;
        }
        if (depth > nesting_limit || selects > nesting_limit) return true;
    }
    return false;
}

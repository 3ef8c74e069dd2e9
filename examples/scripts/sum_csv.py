import csv
import io
from collections import defaultdict


def run(arguments):
    rows = csv.DictReader(io.StringIO(arguments["csv"]))
    for column in (arguments["group"], arguments["value"]):
        if column not in (rows.fieldnames or []):
            raise ValueError(f"there is no column {column!r}; there are {', '.join(rows.fieldnames or [])}")
    sums = defaultdict(float)
    for row in rows:
        try:
            sums[row[arguments["group"]]] += float(row[arguments["value"]])
        except (TypeError, ValueError):
            raise ValueError(f"line {rows.line_num}: {row[arguments['value']]!r} is no number") from None
    return sums

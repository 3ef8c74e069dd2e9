#!/bin/sh
# Makes the databases of this folder, or those of the folder that it is told, with native.c built as NATIVE:
#   NATIVE=../../../bin/sql/native ./fixtures.sh
set -eu
cd "$(dirname "$0")"
to=${1:-.}

# run sends lines as statements to a new database.
run() {
  rm -f "$to/$1" "$to/$1-wal" "$to/$1-shm" "$to/$1-journal"
  grep -v '^--' | tr '\n' '\0' | "$NATIVE" "$to/$1" ${2:-} | grep '^error' && exit 1
  rm -f "$to/$1-shm"
}
run shop.db < shop.sql
run hostile.db < hostile.sql

# What a program leaves that dies: a log with what was committed, and a journal of a transaction that was not.
run log.db abandon <<'END'
PRAGMA page_size = 512
PRAGMA journal_mode = WAL
CREATE TABLE t(x)
INSERT INTO t VALUES ('checkpointed')
PRAGMA wal_checkpoint(TRUNCATE)
INSERT INTO t VALUES ('committed')
BEGIN
INSERT INTO t VALUES ('not committed')
END
run journal.db abandon <<'END'
PRAGMA page_size = 512
PRAGMA cache_size = 2
CREATE TABLE t(x)
WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 60) INSERT INTO t SELECT 'committed and long enough for pages ' || i FROM n
BEGIN
UPDATE t SET x = 'not ' || x
END
